// A panel without content: what the base class shows.
import { shell } from "./panel.js";

export default {
  render({ model, el }) {
    return shell(model, el, "empty").end;
  },
};
