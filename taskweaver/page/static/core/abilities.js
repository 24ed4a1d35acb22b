/** What the server can do, by its own description: the page offers nothing else. */

import { changed } from './loop.js';
import { send } from './api.js';

let paths = null;
let isAsked = false;

/** Return whether the server has an operation, as its description writes the path. */
export function isAble(method, path) {
  if (!isAsked) {
    isAsked = true;
    load();
  }
  return Boolean(paths?.[`/agent/v1/${path}`]?.[method]);
}

async function load() {
  try {
    paths = (await (await send('GET', '../../openapi.json')).json()).paths;
    changed();
  } catch {
    isAsked = false; // asked again at the next drawing
  }
}
