/** The whole tree as horizontal lines, for overview. */

import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon, stateWord } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { here, ui } from '../state.js';
import { goTo } from '../session/actions.js';
import { isFailedBranch } from '../session/branch_states.js';
import { stepsTo, titled } from '../session/paths.js';

const ROW = 30;
const LABEL = 150;
const STATE = 110; // room for the word of a state behind the last round
const MOST_STEP = 44;
const MOST_ZOOM = 4;
let zoom = 1; // from the whole tree on
let pinch = null;

/** Return the map of a session. */
export function mapPane(session) {
  const moment = here(session);
  const onPath = new Map(stepsTo(session.tree, moment.branch, moment.number).map((step) => [step.branch, step.round]));
  const branches = [...session.tree.values()];
  const longest = Math.max(1, ...branches.map((node) => node.own.at(-1)?.number ?? node.forkedAt));
  const step = zoom * Math.max(8, Math.min(MOST_STEP, 900 / longest));
  const width = LABEL + longest * step + STATE;
  const x = (number) => LABEL + number * step;
  const rows = new Map(branches.map((node, at) => [node.name, at * ROW + 20]));
  const close = () => {
    ui.map = false;
    changed();
  };
  const leave = () => {
    zoom = 1;
  };
  return h('section', { class: 'map', mount: () => leave, 'aria-label': 'Map of the tree' },
    h('div', { class: 'pane-head' }, h('h2', {}, 'Map'), h('span', { class: 'muted' }, 'left to right by round; a click goes there'), button('Close', close, { kind: 'quiet end', key: 'M' })),
    h('div', { class: 'map-scroll', ontouchstart: startPinch, ontouchmove: movePinch, tabindex: 0, role: 'group', 'aria-label': 'Map' },
      h('svg', { width, height: branches.length * ROW + 24, viewBox: `0 0 ${width} ${branches.length * ROW + 24}`, role: 'group', 'aria-label': 'Branches' }, session.merges.map((merge, at) => mergeLine(session, merge, at, { rows, x, step })), branches.map((node) => lineOf(session, node, { rows, x, onPath, moment })))));
}

/** Return the distance of two fingers, 0 for other numbers of them. */
function spread({ touches: [one, other, more] }) {
  return other && !more ? Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) : 0;
}

function startPinch(event) {
  pinch = spread(event) ? { from: spread(event), zoom } : null;
}

/** Two fingers change the distance of the rounds. */
function movePinch(event) {
  if (!pinch || !spread(event)) return;
  event.preventDefault();
  zoom = Math.min(MOST_ZOOM, Math.max(1, (pinch.zoom * spread(event)) / pinch.from));
  changed();
}

/** A merge of memory is a dashed line from its source into its branch, after a round. */
function mergeLine(session, { branch, number, source }, at, { rows, x, step }) {
  const [from, to] = [rows.get(source), rows.get(branch)];
  if (from === undefined || to === undefined) return null;
  const end = x(number) + step / 2;
  return h('g', { key: `merge-${at}` }, h('title', {}, `Merged ${titled(session, source)} into ${titled(session, branch)} after round ${number}`),
    h('path', { class: `map-merge c${session.tree.get(source).colour}`, d: `M${end - step / 3} ${from}C${end} ${from} ${end} ${to} ${end} ${to}` }));
}

function lineOf(session, node, { rows, x, onPath, moment }) {
  const y = rows.get(node.name);
  const reach = onPath.get(node.name) ?? -1;
  const from = node.own[0]?.number ?? node.forkedAt + 1;
  const to = node.own.at(-1)?.number ?? node.forkedAt;
  const colour = `c${node.colour}`;
  const above = rows.get(node.parent);
  const join = node.parent === null || above === undefined ? null : h('path', { class: `${colour}${reach >= 0 ? ' thick' : ''}`, d: `M${x(Math.max(1, node.forkedAt))} ${above}C${x(Math.max(1, node.forkedAt)) + 14} ${above} ${x(from) - 20} ${y} ${x(from) - 4} ${y}` });
  return h('g', { key: node.name },
    h('text', { class: `map-name ${colour}`, x: 4, y: y + 4 }, seen(node.title).slice(0, 20)), join,
    to >= from ? h('path', { class: colour, d: `M${x(from)} ${y}H${x(to)}` }) : null,
    reach >= from ? h('path', { class: `${colour} thick`, d: `M${x(from)} ${y}H${x(Math.min(reach, to))}` }) : null,
    to < from ? h('circle', { class: `${colour} hollow`, cx: x(from) - 1, cy: y, r: 3 }) : null,
    node.own.map((round) => h('g', {
      key: round.round_id, class: 'map-round', role: 'button', tabindex: 0, 'aria-label': `Round ${round.number} of ${seen(node.title)}, ${seen(round.title)}`,
      onclick: () => goTo(session, node.name, round.number), onkeydown: (event) => event.key === 'Enter' && goTo(session, node.name, round.number),
    }, h('title', {}, `${round.number} ${seen(round.title)}`),
    h('circle', { class: `${colour} ${reach >= round.number ? 'full' : 'hollow'}`, cx: x(round.number), cy: y, r: moment.branch === node.name && moment.number === round.number ? 7 : 5 }))),
    moment.branch === node.name ? h('text', { class: 'map-you', x: x(node.own.length ? Math.max(moment.number, 1) : from), y: y - 9, 'text-anchor': 'middle' }, 'you') : null,
    stateMark(session, node.name, x(Math.max(from, to)) + 12, y));
}

/** A branch that runs, asks or failed has its sign and word behind its last round, as in the tree. */
function stateMark(session, name, x, y) {
  const state = isFailedBranch(session, name) ? 'failed' : session.stateOf(name);
  if (state === 'idle') return null;
  const sign = state === 'running' ? h('circle', { cx: x + 7, cy: y, r: 5 }) : icon(state === 'asks' ? 'ask' : 'cross', { x, y: y - 8 });
  return h('g', { class: `map-state ${state}` }, sign, h('text', { x: x + 18, y: y + 4 }, stateWord(state)));
}
