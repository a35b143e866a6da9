"""A panel's script and style in few bytes: they lie in every notebook that is saved with the panel.

What is packed is the text of the files beside this one, joined and deflated, nothing else; ``unpacked`` gives it back.
The module that a browser gets unpacks it with its own means and fetches nothing.
"""

from __future__ import annotations

import base64
import json
import re
import zlib

# the module is made from a blob, as anywidget makes its own from the text it is given
_LOADER = """// Script and style of a memoryfield panel, deflated; in Python: memoryfield_widgets.packing.unpacked(text)
const packed = "{packed}";
const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
const {{ script, style }} = JSON.parse(await new Response(stream).text());
const id = "{name}-style";
const node = document.getElementById(id) ?? Object.assign(document.createElement("style"), {{ id }});
node.textContent = style;
document.head.append(node);
const address = URL.createObjectURL(new Blob([script], {{ type: "text/javascript" }}));
const panel = await import(address);
URL.revokeObjectURL(address);
export default panel.default;
"""
_PACKED = re.compile(r'^const packed = "([A-Za-z0-9+/=]+)";$', re.MULTILINE)


def packed(name: str, script: str, style: str) -> str:
    """Return a module that adds the style to the document and exports what the script exports by default."""
    content = json.dumps({"script": script, "style": style}, ensure_ascii=False).encode()
    return _LOADER.format(packed=base64.b64encode(zlib.compress(content, 9)).decode("ascii"), name=name)


def unpacked(module: str) -> tuple[str, str]:
    """Return the script and the style in a packed module.

    Raises:
        ValueError: It is none.
    """
    found = _PACKED.search(module)
    if found is None:
        raise ValueError("this text is no packed panel")
    content = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return content["script"], content["style"]
