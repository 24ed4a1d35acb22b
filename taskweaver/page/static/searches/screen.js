/** Searches: the runs, the tree of one above its curve, and one attempt. */

import { isAble } from '../core/abilities.js';
import { button, empty, failure, loading } from '../core/bits.js';
import { h } from '../core/dom.js';
import { stateTag } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { go, searchAddress } from '../core/route.js';
import { count, metric, seconds, seen } from '../core/words.js';
import { ui } from '../state.js';
import { attemptPane } from './attempt.js';
import { curve } from './curve.js';
import { searches, shownNode, stopSearch } from './data.js';
import { attemptNumber, layout } from './layout.js';
import { treeList } from './list.js';
import { offerStart, openResume, searchForm, toggleStart } from './start.js';
import { tree } from './tree.js';

export { leaveSearches, lost, readSearches } from './data.js';
export { heard } from './talk.js';

const own = { isList: false, isFit: true };
let placed = { of: null, result: null };

/** Return the commands of this screen. */
export function treeKeys() {
  return [
    { text: 'Attempts as a list', key: 'l', run: () => set('isList', !own.isList) },
    { text: 'Fit the tree into the window', key: '0', run: () => set('isFit', !own.isFit) },
  ];
}

function set(name, value) {
  own[name] = value;
  changed();
}

/** Return the screen. */
export function searchesScreen() {
  const { runs, tree: found, problem } = searches;
  const id = shownNode(ui.place);
  if (runs?.length === 0 && isAble('post', 'searches')) offerStart();
  return h('div', { class: 'searches' },
    h('nav', { class: 'runs', 'aria-label': 'Searches' }, h('div', { class: 'pane-head' }, h('h2', {}, 'Searches'), isAble('post', 'searches') ? button('New', toggleStart, { kind: 'primary end' }) : null),
      problem ? failure('Searches cannot be read', problem) : null,
      runs === null && !problem ? loading(3) : null,
      runs?.length === 0 ? empty('No searches yet', h('p', { class: 'muted' }, 'A search tries many programs for one idea and keeps the best.')) : null,
      h('ul', {}, (runs ?? []).map(runRow))),
    h('main', { class: 'run', tabindex: -1 }, searchForm(found?.run), found ? runView(found, id) : null),
    attemptPane(found ? id : ''));
}

function runRow(run) {
  const isHere = run.name === searches.run;
  const best = run.best_value === null ? 'no value yet' : `${metric(run.best_value)} ${seen(run.metric)}`;
  return h('li', { key: run.name }, h('a', { class: `run-row${isHere ? ' here' : ''}`, href: searchAddress(run.name), 'aria-current': isHere ? 'page' : null },
    h('b', {}, seen(run.title) || run.name), stateOf(run),
    h('span', { class: 'muted' }, `${attemptsText(run)}, ${best}`)));
}

/** Repetitions measure an attempt again: they have a number and a dot as well, but the limit does not count them. */
function attemptsText(run) {
  return `${count(run.nodes - run.repetitions, 'attempt')}${run.repetitions ? `, ${count(run.repetitions, 'repetition')}` : ''}`;
}

/** The reasons name nodes; here they are attempts. */
function reasonText({ reason, state }) {
  const most = /limit of the (run|stage) reached: (\d+) nodes?$/.exec(reason);
  if (!most) return seen(reason);
  const whose = most[1] === 'run' ? 'the run' : 'its last stage';
  return `${seen(reason.slice(0, most.index))}${state === 'over' ? 'Ended' : 'Stopped'} at the limit of ${whose}: ${count(most[2], 'attempt')}.`;
}

function runView(found, id) {
  const { run } = found;
  if (placed.of !== found.nodes) placed = { of: found.nodes, result: layout(found.nodes, run) };
  const choose = (node) => go(searchAddress(run.name, node));
  const direction = `${seen(run.metric)}, ${run.maximize ? 'higher' : 'lower'} is better`;
  return [
    h('div', { class: 'pane-head' }, h('h2', { class: 'shrink' }, seen(run.title) || run.name), stateOf(run), actions(run)),
    run.reason ? h('p', { class: 'muted run-reason' }, reasonText(run)) : null,
    budgets(found),
    h('div', { class: 'tree-head' }, h('h3', { class: 'shrink' }, attemptsText(run)), h('span', { class: 'muted shrink' }, direction), h('span', { class: 'row end' },
      button('Fit', () => set('isFit', !own.isFit), { kind: 'small', key: '0', 'aria-pressed': String(own.isFit) }), button(own.isList ? 'As tree' : 'As list', () => set('isList', !own.isList), { kind: 'small', key: 'L' }))),
    own.isList ? treeList(placed.result, run, id, choose) : h('div', { class: `tree-view${own.isFit ? ' fit' : ''}`, tabindex: 0, role: 'group', 'aria-label': 'Tree of attempts' }, tree(placed.result, run, id, choose)),
    legend(run, placed.result.nodes), curve(found.nodes, run), printed(found)];
}

function stateOf(run) {
  if (run.is_stopping) return h('span', { class: 'muted' }, 'stopping');
  if (run.state !== 'over') return stateTag(run.state);
  return run.best ? stateTag('done', 'finished') : stateTag('failed');
}

/** Only the server that works on a run can stop it; one that is over goes on if a limit was reached. */
function actions(run) {
  if (run.state === 'running') return run.is_ours && !run.is_stopping ? button('Stop', () => stopSearch(run.name), { kind: 'end', sign: 'stop' }) : null;
  const canGoOn = run.state === 'stopped' || /^limit of the run/.test(run.reason);
  return canGoOn && isAble('post', 'searches/{run}/resume') ? button('Go on...', () => openResume(run), { kind: 'end' }) : null;
}

/** The last lines that the process of a run printed. */
function printed({ output }) {
  if (!output) return null;
  return h('details', { class: 'printed' }, h('summary', {}, 'Printed by the search'), h('pre', { class: 'output', tabindex: 0, role: 'group', 'aria-label': 'Printed by the search' }, seen(output)));
}

function budgets({ run }) {
  const tried = run.nodes - run.repetitions;
  const parts = [['attempts', String(tried), run.budget_nodes ? tried / run.budget_nodes : null, run.budget_nodes]];
  if (run.repetitions) parts.push(['repetitions', String(run.repetitions), null, null]);
  // A run of another program may not have noted its time.
  if (run.seconds || run.state === 'running') parts.push(['time', seconds(run.seconds), run.budget_seconds ? run.seconds / run.budget_seconds : null, run.budget_seconds && seconds(run.budget_seconds)]);
  if (run.cost !== undefined && run.cost !== null) parts.push(['money', `$${run.cost.toFixed(2)}`, run.budget_cost ? run.cost / run.budget_cost : null, run.budget_cost && `$${run.budget_cost}`]);
  return h('dl', { class: 'budgets' }, parts.map(([name, text, part, most]) => h('div', {}, h('dt', { class: 'muted' }, name), h('dd', {}, most ? `${text} of ${most}` : text),
    part === null ? null : h('div', { class: 'budget' }, h('span', { style: { width: `${Math.min(100, part * 100)}%` } })))));
}

function legend(run, nodes) {
  const sign = (kind, text) => h('span', { class: 'row' }, h('svg', { width: 18, height: 18, viewBox: '0 0 18 18', 'aria-hidden': 'true' }, kind), text);
  return h('p', { class: 'legend-line muted' },
    sign(h('circle', { class: 'value-mark', cx: 9, cy: 9, r: 6, style: { '--fill': '1' } }), 'bigger and fuller = better'), nodes.some((node) => node.isFailed) ? sign(h('path', { class: 'failed-mark', d: 'M5 5l8 8m0 -8l-8 8' }), 'failed') : null,
    nodes.some((node) => node.status === 'running') ? sign(h('circle', { class: 'running-mark', cx: 9, cy: 9, r: 6 }), 'running') : null,
    nodes.some((node) => node.status === 'cancelled') ? sign(h('circle', { class: 'running-mark', cx: 9, cy: 9, r: 6 }), 'not finished') : null, run.best_value === null ? null : sign([h('circle', { class: 'best-ring', cx: 9, cy: 9, r: 8 }), h('circle', { class: 'value-mark', cx: 9, cy: 9, r: 5, style: { '--fill': '1' } })], `best: attempt ${attemptNumber(run.best)}, ${metric(run.best_value)}`),
    placed.result.byId.get(run.best)?.parent ? 'thick line = path to the best' : null);
}
