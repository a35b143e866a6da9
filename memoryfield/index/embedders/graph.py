"""The network of a BERT or NomicBERT encoder as an ONNX graph, from its torch weights.

Built by hand and not by torch's exporter: that one needs another package, and the graph here can leave out what
embedding never needs. Texts of one call have one length, so there is no padding, no attention mask and no token
type; pooling is a plain mean (or the first token). Operators of the ``com.microsoft`` domain are used where one
of them replaces many: onnxruntime and openvino both read them.

Whether a graph is right is not argued here: ``export`` compares its vectors with torch's before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

INPUT = "ids"  # (texts, tokens) int64
OUTPUT = "pooled"  # (texts, dimensions) float32, not scaled
KINDS = ("bert", "nomic_bert")
POOLINGS = ("mean", "cls")
_FUSED = "com.microsoft"


class UnknownNetwork(ValueError):
    """The network has a part that this builder does not know; the message names it."""


@dataclass(frozen=True)
class Network:
    """What a graph is built from.

    Attributes:
        config: The model's configuration as transformers has it in memory.
        weights: The encoder's parameters by name, float32.
        pooling: One of ``POOLINGS``.
        positions: Longest text in tokens.
    """

    config: Mapping[str, Any]
    weights: Mapping[str, Array]
    pooling: str
    positions: int


def build(network: Network) -> Any:
    """Return the network as an ``onnx.ModelProto``.

    Raises:
        UnknownNetwork: A part is not known here.
    """
    kind = network.config.get("model_type")
    if kind not in KINDS:
        raise UnknownNetwork(f"network kind {kind!r}; known are {', '.join(KINDS)}")
    if network.pooling not in POOLINGS:
        raise UnknownNetwork(f"pooling {network.pooling!r}; known are {', '.join(POOLINGS)}")
    graph = _Graph(network)
    states = _bert(graph) if kind == "bert" else _nomic_bert(graph)
    if network.pooling == "mean":
        graph.node("ReduceMean", [states, graph.constant(np.array([1], np.int64))], outputs=[OUTPUT], keepdims=0)
    else:
        graph.node("Gather", [states, graph.constant(np.array(0, np.int64))], outputs=[OUTPUT], axis=1)
    return graph.model()


class _Graph:
    """Collects nodes and constants under names that cannot clash."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.config = network.config
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._used: set[str] = set()

    def constant(self, value: Array) -> str:
        from onnx import numpy_helper

        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def weight(self, name: str, *, transposed: bool = False) -> Array:
        try:
            value = self.network.weights[name]
        except KeyError:
            raise UnknownNetwork(f"there is no weight {name!r}") from None
        self._used.add(name)
        return value.T if transposed else value

    def parameter(self, name: str) -> str:
        return self.constant(self.weight(name))

    def node(
        self, kind: str, inputs: list[str], *, outputs: list[str] | None = None, fused: bool = False, **attributes: Any
    ) -> str:
        from onnx import helper

        outputs = outputs or [f"v{len(self._nodes)}"]
        domain = _FUSED if fused else ""
        self._nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def linear(self, x: str, *names: str) -> str:
        """Multiply *x* by the weights of linear layers, laid side by side."""
        matrices = [self.weight(f"{name}.weight", transposed=True) for name in names]
        return self.node("MatMul", [x, self.constant(np.concatenate(matrices, axis=1))])

    def norm(self, x: str, name: str) -> str:
        inputs = [x, self.parameter(f"{name}.weight"), self.parameter(f"{name}.bias")]
        return self.node("LayerNormalization", inputs, axis=-1, epsilon=self._epsilon())

    def add_norm(self, x: str, residual: str, name: str, bias: str | None = None) -> str:
        """Add *residual* (and the bias of a linear layer), then normalise."""
        inputs = [x, residual, self.parameter(f"{name}.weight"), self.parameter(f"{name}.bias")]
        inputs += [self.parameter(bias)] if bias else []
        return self.node("SkipLayerNormalization", inputs, fused=True, epsilon=self._epsilon())

    def split(self, x: str, parts: int) -> list[str]:
        outputs = [f"v{len(self._nodes)}_{part}" for part in range(parts)]
        self.node("Split", [x], outputs=outputs, axis=-1, num_outputs=parts)
        return outputs

    def _epsilon(self) -> float:
        return float(self.config["layer_norm_eps"])

    def require(self, key: str, *allowed: Any) -> None:
        """Refuse a configuration whose *key* is there and has another value than those allowed."""
        if self.config.get(key, allowed[0]) not in allowed:
            raise UnknownNetwork(f"{key} is {self.config[key]!r}; known is {' or '.join(map(repr, allowed))}")

    def model(self) -> Any:
        from onnx import TensorProto, helper

        unused = {name for name in self.network.weights if not name.startswith("pooler.")} - self._used
        if unused:
            raise UnknownNetwork(f"weights that no known part uses: {', '.join(sorted(unused)[:3])}")
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info(INPUT, TensorProto.INT64, ["texts", "tokens"])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["texts", int(self.config["hidden_size"])])],
            self._constants,
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(_FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _bert(graph: _Graph) -> str:
    graph.require("hidden_act", "gelu")
    graph.require("position_embedding_type", "absolute")
    graph.require("is_decoder", False)
    graph.require("add_cross_attention", False)
    types = graph.weight("embeddings.token_type_embeddings.weight")[0]
    positions = graph.weight("embeddings.position_embeddings.weight")
    if len(positions) < graph.network.positions:
        raise UnknownNetwork(f"{graph.network.positions} tokens, but {len(positions)} position embeddings")
    words = graph.node("Gather", [graph.parameter("embeddings.word_embeddings.weight"), INPUT])
    length = graph.node("Shape", [INPUT], start=1, end=2)
    # Every token has type 0, so its embedding can stand in the table of positions.
    places = graph.node("Slice", [graph.constant(positions + types), graph.constant(np.zeros(1, np.int64)), length])
    x = graph.norm(graph.node("Add", [words, places]), "embeddings.LayerNorm")
    heads = int(graph.config["num_attention_heads"])
    for number in range(int(graph.config["num_hidden_layers"])):
        layer = f"encoder.layer.{number}"
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        bias = graph.constant(np.concatenate([graph.weight(f"{part}.bias") for part in parts]))
        inputs = [*graph.split(graph.linear(x, *parts), 3), bias]
        y = graph.node("MultiHeadAttention", inputs, fused=True, num_heads=heads)
        dense = f"{layer}.attention.output.dense"
        x = graph.add_norm(graph.linear(y, dense), x, f"{layer}.attention.output.LayerNorm", f"{dense}.bias")
        dense = f"{layer}.intermediate.dense"
        y = graph.node("BiasGelu", [graph.linear(x, dense), graph.parameter(f"{dense}.bias")], fused=True)
        dense = f"{layer}.output.dense"
        x = graph.add_norm(graph.linear(y, dense), x, f"{layer}.output.LayerNorm", f"{dense}.bias")
    return x


def _nomic_bert(graph: _Graph) -> str:
    graph.require("hidden_act", "silu")
    heads = int(graph.config["num_attention_heads"])
    width = int(graph.config.get("head_dim") or graph.config["hidden_size"] // heads)
    cosine, sine = (graph.constant(table) for table in _rotation(graph.config, width, graph.network.positions))
    first = graph.constant(np.zeros(1, np.int64))
    types = graph.constant(graph.weight("embeddings.token_type_embeddings.weight")[0])
    words = graph.node("Gather", [graph.parameter("embeddings.word_embeddings.weight"), INPUT])
    x = graph.norm(graph.node("Add", [words, types]), "embeddings.LayerNorm")
    for number in range(int(graph.config["num_hidden_layers"])):
        layer = f"layers.{number}"
        parts = [f"{layer}.self_attn.{part}_proj" for part in "qkv"]
        query, key, value = graph.split(graph.linear(x, *parts), 3)
        query, key = (
            graph.node("RotaryEmbedding", [half, first, cosine, sine], fused=True, interleaved=0, num_heads=heads)
            for half in (query, key)
        )
        y = graph.node("MultiHeadAttention", [query, key, value], fused=True, num_heads=heads)
        x = graph.add_norm(graph.linear(y, f"{layer}.self_attn.o_proj"), x, f"{layer}.post_attention_layernorm")
        gate = graph.node("QuickGelu", [graph.linear(x, f"{layer}.mlp.gate_proj")], fused=True, alpha=1.0)
        y = graph.node("Mul", [gate, graph.linear(x, f"{layer}.mlp.up_proj")])
        x = graph.add_norm(graph.linear(y, f"{layer}.mlp.down_proj"), x, f"{layer}.post_mlp_layernorm")
    return x


def _rotation(config: Mapping[str, Any], width: int, positions: int) -> tuple[Array, Array]:
    """Return cosine and sine of every position's rotation: (positions, width / 2) float32 each."""
    rope = config.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default" or rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise UnknownNetwork(f"rotary positions of type {rope.get('rope_type')!r}; known is 'default'")
    base = float(rope.get("rope_theta", 1000.0))
    inverse = (1.0 / base ** (np.arange(0, width, 2, dtype=np.float32) / np.float32(width))).astype(np.float32)
    angles = np.arange(positions, dtype=np.float32)[:, None] * inverse
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
