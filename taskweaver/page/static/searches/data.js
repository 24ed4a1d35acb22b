/** Runs of searches as the server has them; one that runs is read again while it is shown. */

import * as api from '../core/api.js';
import { changed } from '../core/loop.js';
import { go, momentAddress } from '../core/route.js';
import { attempt } from '../session/actions.js';

const LOOK_MS = 2_000;

/** What is known of the searches. */
export const searches = { runs: null, tree: null, node: null, nodeKey: '', problem: '', run: '' };

let timer = null;

/** Read what a place of the searches shows; go on while a run is under way. */
export async function readSearches(place) {
  clearTimeout(timer);
  try {
    searches.runs = (await api.get('searches')).runs;
    const wanted = place.run || searches.runs[0]?.name || '';
    if (searches.run !== wanted) Object.assign(searches, { run: wanted, tree: null, node: null, nodeKey: '' });
    if (wanted) searches.tree = await api.get(`searches/${api.path(wanted)}`);
    await readNode(place);
    searches.problem = '';
  } catch (error) {
    searches.problem = error.message;
  }
  changed();
  const isRunning = searches.runs?.some((run) => run.state === 'running');
  if (isRunning) timer = setTimeout(() => readSearches(place), LOOK_MS);
}

/** Read no longer. */
export function leaveSearches() {
  clearTimeout(timer);
}

/** Return the attempt that is shown: that of the address, else the best one. */
export function shownNode(place) {
  return place.node || searches.tree?.run.best || searches.tree?.nodes.at(-1)?.node || '';
}

async function readNode(place) {
  const id = shownNode(place);
  const brief = searches.tree?.nodes.find((one) => one.node === id);
  const key = `${searches.run}/${id}/${brief?.status}`;
  if (!id || searches.nodeKey === key) return;
  const read = async (one) => (await api.get(`searches/${api.path(searches.run)}/nodes/${api.path(one)}`)).node;
  const [node, parent] = await Promise.all([read(id), brief?.parent ? read(brief.parent).catch(() => null) : null]);
  Object.assign(searches, { node, parent, nodeKey: key });
}

/** Start a search of an idea. */
export function startSearch(body) {
  return attempt(async () => {
    const made = await api.post('searches', body);
    go(`#/searches/${encodeURIComponent(made.name)}`);
  });
}

/** Stop a run. */
export function stopSearch(run) {
  return attempt(async () => {
    await api.post(`searches/${api.path(run)}/stop`);
    await readSearches({ run, node: '' });
  });
}

/** Make a session that continues an attempt, and go there. */
export function chatWith(run, node) {
  return attempt(async () => {
    const made = await api.post(`searches/${api.path(run)}/nodes/${api.path(node)}/session`);
    go(momentAddress(made.session_id, 'main'));
  });
}
