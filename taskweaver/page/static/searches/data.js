/** Runs of searches as the server has them; one that runs is read again while it is shown. */

import * as api from '../core/api.js';
import { changed } from '../core/loop.js';
import { go, momentAddress, searchAddress } from '../core/route.js';
import { attempt } from '../session/actions.js';
import { notify } from '../state.js';
import { leaveTalk, lost as lostTalk, readTalk } from './talk.js';

const LOOK_MS = 2_000;

/** What is known of the searches. */
export const searches = { runs: null, tree: null, node: null, nodeKey: '', problem: '', run: '' };

let timer = null;
let shownPlace = null;

/** Read what a place of the searches shows; go on while a run is under way. */
export async function readSearches(place) {
  clearTimeout(timer);
  shownPlace = place;
  try {
    const { runs } = await api.get('searches');
    const wanted = place.run || runs[0]?.name || '';
    const tree = wanted ? await readTree(wanted) : null;
    if (shownPlace !== place) return;
    if (searches.run !== wanted) Object.assign(searches, { node: null, nodeKey: '' });
    Object.assign(searches, { runs, run: wanted, tree, problem: '' });
    changed();
    await readNode(place);
  } catch (error) {
    if (shownPlace !== place) return;
    searches.problem = error.message;
  }
  changed();
  const isRunning = searches.runs?.some((run) => run.state === 'running');
  if (isRunning && shownPlace === place) timer = setTimeout(() => readSearches(place), LOOK_MS);
}

/** Read a run; its attempts come only if they are others than those that are here. */
async function readTree(run) {
  const known = searches.run === run ? searches.tree : null;
  const tree = await api.get(`searches/${api.path(run)}`, { seen: known?.version });
  return tree.nodes ? tree : { ...tree, nodes: known.nodes };
}

/** Read no longer. */
export function leaveSearches() {
  clearTimeout(timer);
  shownPlace = null;
  searches.nodeKey = '';
  leaveTalk();
}

/** Events of the attempt that is shown were lost: it is read again. */
export function lost(id) {
  lostTalk(id);
  searches.nodeKey = '';
}

/** Return the attempt that is shown: that of the address, else the best one. */
export function shownNode(place) {
  return place.node || searches.tree?.run.best || searches.tree?.nodes.at(-1)?.node || '';
}

async function readNode(place) {
  const id = shownNode(place);
  const brief = searches.tree?.nodes.find((one) => one.node === id);
  // One that runs may be made again under another branch, after its worker died.
  const key = `${searches.run}/${id}/${brief?.status}/${brief?.status === 'running' ? searches.tree.version : ''}`;
  if (!id || searches.nodeKey === key) return;
  const node = await api.get(`searches/${api.path(searches.run)}/nodes/${api.path(id)}`);
  if (shownPlace !== place) return;
  Object.assign(searches, { node, nodeKey: key });
  readTalk(searches.run, node);
}

/** Start a search of an idea: `{idea, files, steps, seconds, cost}`. Raises Problem. */
export async function startSearch(body) {
  const made = await api.post('searches', body);
  go(searchAddress(made.name));
  await readSearches({ run: made.name, node: '' });
}

/** Stop a run: what is being tried is given up. */
export function stopSearch(run) {
  return attempt(async () => {
    await api.post(`searches/${api.path(run)}/stop`);
    await readSearches({ run, node: '' });
  });
}

/** Go on with a run, with other limits where they are given. Raises Problem. */
export async function resumeSearch(run, limits) {
  await api.post(`searches/${api.path(run)}/resume`, limits);
  await readSearches({ run, node: '' });
}

/** Fork an attempt into a branch that continues it, and go there. */
export function chatWith(run, node) {
  return attempt(async () => {
    const made = await api.post(`searches/${api.path(run)}/nodes/${api.path(node)}/session`);
    go(momentAddress(made.session_id, made.branch));
    if (made.is_copy) notify('The run is at work elsewhere, so this chat is a copy: with the files, without the variables.');
  });
}
