/** Files of a session as addresses of this tab: read with the token, kept while they are used. */

import { send } from './api.js';

const MOST_KEPT = 60;
const kept = new Map();

/** Return `{url, problem}` of a picture, filled when it is here; `onReady` is called then. */
export function picture(where, query, onReady) {
  const key = JSON.stringify([where, query]);
  let found = kept.get(key);
  if (!found) {
    found = { url: null, problem: null };
    kept.set(key, found);
    load(found, where, query).then(onReady);
    trim();
  }
  return found;
}

async function load(found, where, query) {
  try {
    const response = await send('GET', where, { query });
    found.url = URL.createObjectURL(await response.blob());
  } catch (error) {
    found.problem = error.message;
  }
}

function trim() {
  while (kept.size > MOST_KEPT) {
    const [key, oldest] = kept.entries().next().value;
    kept.delete(key);
    if (oldest.url) URL.revokeObjectURL(oldest.url);
  }
}
