/** The tree of branches and rounds: the navigation of a session. */

import { button, menu } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon, stateTag, stateWord } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { count, roundTitle } from '../core/words.js';
import { fold, here, isFolded, openWay, ui } from '../state.js';
import { compare, goTo, openFork } from './actions.js';
import { isFailedBranch } from './branch_states.js';
import { endBranchRenaming, renameBranch } from './changes.js';
import { outlineKey } from './outline_keys.js';
import { outlineRows, titled } from './paths.js';
import { hasFailed, isStopped } from './rounds.js';

const STEP = 16;
const FIRST = 14;
const MARGIN = 12;

let scrolled = { top: 0, height: 800 };

/** Return the height of a row: rows that are touched are higher. */
function rowHeight() {
  return matchMedia('(max-width: 760px), (pointer: coarse)').matches ? 40 : 26;
}

/** Return the rows of the outline of a session as it is. */
function rowsOf(session) {
  return outlineRows(session.tree, (name) => isFolded(session, name), here(session));
}

/** Return the outline. */
export function outline(session) {
  const rows = rowsOf(session);
  const height = rowHeight();
  const from = Math.max(0, Math.floor(scrolled.top / height) - MARGIN);
  const to = Math.min(rows.length, Math.ceil((scrolled.top + scrolled.height) / height) + MARGIN);
  const focus = focusRow(rows);
  const isAlone = session.branches.length === 1;
  return h('nav', { class: 'tree-pane', 'aria-label': 'Branches', hidden: ui.panes.isTreeHidden },
    h('div', { class: 'pane-head' },
      h('h2', {}, 'Branches'),
      h('span', { class: 'muted' }, String(session.branches.length)),
      isAlone ? null : h('span', { class: 'row end' }, comparison(session), button('Map', () => toggleMap(), { kind: 'quiet', key: 'M', 'aria-pressed': String(ui.map) }))),
    h('div', { class: 'tree-scroll', onscroll: onScroll, mount: watch },
      h('div', { role: 'tree', 'aria-label': 'Branches and rounds', class: 'tree', style: { height: `${rows.length * height}px` }, onkeydown: (event) => outlineKey(event, session, rows) },
        rows.slice(from, to).map((row, at) => outlineRow(session, row, from + at, height, row.key === focus))),
      isAlone ? h('p', { class: 'first-hint', style: { top: `${rows.length * height}px` } }, 'Every question becomes a row here. To try another way, fork a row: the fork gets its own copy of the data, and this one stays as it is.') : null),
    isAlone ? null : legend());
}


function comparison(session) {
  const others = session.branches.filter((one) => one.name !== here(session).branch);
  if (others.length === 1) return button('Compare', () => compare(session, others[0].name), { kind: 'quiet', key: 'C' });
  return menu('compare', 'Compare with', others.map((one) => [titled(session, one.name), () => compare(session, one.name)]), false, 'Compare');
}

function toggleMap() {
  ui.map = !ui.map;
  ui.pane = 'chat'; // on a phone it is shown there
  changed();
}

function onScroll(event) {
  scrolled = { top: event.target.scrollTop, height: event.target.clientHeight };
  changed();
}

function watch(element) {
  const observer = new ResizeObserver(() => {
    if (element.clientHeight === scrolled.height) return;
    scrolled = { top: element.scrollTop, height: element.clientHeight };
    changed();
  });
  observer.observe(element);
  return () => observer.disconnect();
}

function focusRow(rows) {
  if (rows.some((row) => row.key === ui.treeFocus)) return ui.treeFocus;
  return (rows.find((row) => row.isHere) ?? rows.find((row) => row.kind === 'branch'))?.key;
}

function outlineRow(session, row, at, height, isFocus) {
  const place = { transform: `translateY(${at * height}px)`, height: `${height}px`, '--indent': `${row.depth * STEP}px` };
  const common = { key: row.key, style: place, 'data-row': row.key };
  if (row.kind === 'goes-on') {
    return h('div', { ...common, class: 'tree-row goes-on', role: 'none' }, graph(row, height), h('span', { class: 'shrink' }, h('b', {}, titled(session, row.branch)), ` goes on after round ${row.number}`));
  }
  const item = { ...common, role: 'treeitem', 'aria-level': row.depth + (row.kind === 'branch' ? 1 : 2), tabindex: isFocus ? 0 : -1, onfocus: () => { ui.treeFocus = row.key; } };
  if (row.kind === 'branch' && session.renamedBranch === row.branch) return renameRow(session, row, item, height);
  if (row.kind === 'merge') return mergeRow(session, row, item, height);
  return row.kind === 'branch' ? branchRow(session, row, item, height) : roundRow(session, row, item, height);
}

function branchRow(session, row, item, height) {
  const state = branchState(session, row);
  const toggle = () => {
    fold(session, row.branch, !row.isFolded);
    changed();
  };
  const open = (event) => {
    if (event.shiftKey) return compare(session, row.branch);
    toggle();
    return null;
  };
  const rounds = row.note ? `${row.note}, ${count(row.rounds, 'round')}` : count(row.rounds, 'round');
  return h('div', {
    ...item, class: `tree-row branch${row.isOnPath ? ' on-path' : ''}${row.isHere ? ' here' : ''}`, 'aria-current': row.isHere ? 'location' : null, 'aria-expanded': row.hasRows ? String(!row.isFolded) : null, onclick: open,
    'aria-label': [[titled(session, row.branch), rounds, state ? stateWord(state) : '', row.isHere ? 'you' : ''].filter(Boolean).join(' '), 'branch', row.isFolded && row.hasRows ? 'folded' : ''].filter(Boolean).join(', '),
  },
  graph(row, height),
  h('span', { class: `branch-name c${row.colour}` }, titled(session, row.branch)),
  h('span', { class: 'muted strong shrink' }, rounds),
  state ? stateTag(state) : null,
  row.isHere ? h('span', { class: 'you' }, 'you') : null,
  h('span', { class: 'row-end' },
    rowTool('rename', 'edit', `Rename ${titled(session, row.branch)}`, () => renameBranch(session, row.branch)),
    row.hasRows && row.isForked ? icon(row.isFolded ? 'right' : 'down') : null));
}

/** The name of a branch as a field, in its row. */
function renameRow(session, row, item, height) {
  const onkeydown = (event) => {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === 'Enter') endBranchRenaming(session, event.target.value);
    else if (event.key === 'Escape') endBranchRenaming(session);
  };
  const mount = (field) => {
    field.value = titled(session, row.branch);
    field.focus();
    field.select();
  };
  return h('div', { ...item, key: `${item.key} renamed`, class: 'tree-row branch', tabindex: -1, onfocus: null }, graph(row, height),
    h('input', { type: 'text', class: 'rename-field', 'aria-label': `Name of ${titled(session, row.branch)}`, maxlength: 64, mount, onkeydown, onblur: () => endBranchRenaming(session) }));
}

/** A button in a row, which shows while the row is looked at. */
function rowTool(kind, sign, label, run) {
  const onclick = (event) => {
    event.stopPropagation();
    run();
  };
  return h('button', { type: 'button', class: `row-tool ${kind}`, tabindex: -1, 'aria-label': label, title: label, onclick }, icon(sign));
}

function branchState(session, row) {
  const state = session.stateOf(row.branch);
  if (state !== 'idle') return state;
  return isFailedBranch(session, row.branch) ? 'failed' : '';
}

function roundRow(session, row, item, height) {
  const isRunning = row.state === 'created' && session.stateOf(row.branch) !== 'idle';
  const isCut = isStopped(session, row.id);
  const isFailed = !isCut && hasFailed(row, session.rounds.get(row.id));
  const isUnread = session.unread.has(row.id) && !row.isHere;
  // It begins with the words that are seen, so that a voice can name them.
  const said = [`${row.number} ${roundTitle(row.title)}${row.isHere ? ' you' : ''}`, `round of ${titled(session, row.branch)}`, row.isOnPath ? 'on your path' : '', isRunning ? 'running' : '', isCut ? 'stopped' : isFailed ? 'failed' : '',
    isUnread ? 'new' : '', row.forks ? count(row.forks, 'fork') : ''].filter(Boolean).join(', ');
  return h('div', {
    ...item, class: `tree-row is-round${row.isOnPath ? ' on-path' : ''}${row.isHere ? ' here' : ''}`, 'aria-label': said, 'aria-current': row.isHere ? 'location' : null,
    onclick: (event) => openRow(event, session, row), title: roundTitle(row.title),
  },
  graph(row, height),
  h('span', { class: 'number' }, row.number),
  h('span', { class: 'title' }, roundTitle(row.title)),
  isUnread ? h('span', { class: 'unread', title: 'New since you were here' }) : null,
  isCut ? h('span', { class: 'muted row-end', title: 'stopped' }, icon('stop')) : null,
  isFailed ? h('span', { class: 'failed-sign', title: 'failed' }, icon('cross')) : null,
  rowTool('fork-here', 'fork', `Fork at round ${row.number}`, () => openFork(session, row.branch, row.number)),
  row.isHere ? h('span', { class: 'you' }, 'you') : null);
}

/** A merge of memory is a row below the round it came after. */
function mergeRow(session, row, item, height) {
  const colour = session.tree.get(row.source)?.colour ?? 0;
  return h('div', {
    ...item, class: `tree-row is-merge${row.isOnPath ? ' on-path' : ''}`, onclick: (event) => openRow(event, session, row),
    'aria-label': `Merged ${titled(session, row.source)}, memory, into ${titled(session, row.branch)} after round ${row.number}`,
  },
  graph(row, height), h('span', { class: 'number' }, icon('merge')), h('span', { class: 'title' }, 'Merged ', h('span', { class: `branch-name c${colour}` }, titled(session, row.source))));
}

function openRow(event, session, row) {
  if (event.shiftKey) return compare(session, row.branch);
  ui.treeFocus = row.key;
  ui.pane = 'chat';
  goTo(session, row.branch, row.number);
  openWay(session);
  return null;
}

/** Draw the lines of the branches at a row, and its dot or square. */
function graph(row, height) {
  const x = (depth) => FIRST + depth * STEP;
  const middle = height / 2;
  const parts = [];
  for (const line of row.lines) {
    if (line.isOn) parts.push(h('path', { class: `c${line.colour}${line.isThick ? ' thick' : ''}`, d: `M${x(line.depth)} 0V${height}` }));
  }
  const own = `c${row.colour}`;
  const centre = x(row.depth);
  if (row.kind === 'branch') parts.push(...branchGraph(row, x, middle, height));
  else if (row.kind === 'goes-on') parts.push(h('path', { class: `${own}${row.isThick ? ' thick' : ''}`, d: `M${centre} 0V${height}` }));
  else {
    parts.push(h('path', { class: `${own}${row.isOnPath ? ' thick' : ''}`, d: `M${centre} 0V${middle}` }));
    if (!row.isLast) parts.push(h('path', { class: `${own}${row.isThickBelow ? ' thick' : ''}`, d: `M${centre} ${middle}V${height}` }));
    if (row.kind === 'merge') parts.push(h('rect', { class: `${own}${row.isOnPath ? ' full' : ' hollow'}`, x: centre - 3.5, y: middle - 3.5, width: 7, height: 7, transform: `rotate(45 ${centre} ${middle})` }));
    else parts.push(h('circle', { class: `${own}${row.isOnPath ? ' full' : ' hollow'}`, cx: centre, cy: middle, r: row.isHere ? 6 : 4 }));
    if (row.isHere) parts.push(h('circle', { class: 'eye', cx: centre, cy: middle, r: 2 }));
  }
  const width = x(row.depth) + STEP - 2;
  return h('svg', { class: 'graph', width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' }, parts);
}

function branchGraph(row, x, middle, height) {
  const own = `c${row.colour}`;
  const thick = row.isOnPath ? ' thick' : '';
  const parts = [];
  if (row.isForked) {
    const [from, to] = [x(row.depth - 1), x(row.depth)];
    const isShort = row.isFolded || !row.hasRows;
    parts.push(h('path', { class: `${own}${thick}`, d: `M${from} 0V${middle - 6}Q${from} ${middle} ${from + 6} ${middle}H${to - (isShort ? 4 : 6)}${isShort ? '' : `Q${to} ${middle} ${to} ${middle + 6}V${height}`}` }));
    if (!row.hasRows) parts.push(h('circle', { class: `${own}${row.isHere ? ' full' : ' hollow'}`, cx: to, cy: middle, r: row.isHere ? 6 : 3 }), row.isHere ? h('circle', { class: 'eye', cx: to, cy: middle, r: 2 }) : null);
    else if (row.isFolded) parts.push(h('rect', { class: `${own} full`, x: to - 4, y: middle - 4, width: 8, height: 8, rx: 1.5 }));
  } else if (row.isFolded && row.hasRows) parts.push(h('rect', { class: `${own} full`, x: x(row.depth) - 4, y: middle - 4, width: 8, height: 8, rx: 1.5 }));
  return parts;
}

function legend() {
  const dot = (kind) => h('svg', { width: 10, height: 10, viewBox: '0 0 10 10', 'aria-hidden': 'true' }, kind === 'square'
    ? h('rect', { class: 'c0 full', x: 1, y: 1, width: 8, height: 8, rx: 1.5 })
    : [h('circle', { class: `c0 ${kind === 'eye' ? 'full' : kind}`, cx: 5, cy: 5, r: kind === 'eye' ? 5 : 4 }), kind === 'eye' ? h('circle', { class: 'eye', cx: 5, cy: 5, r: 2 }) : null]);
  return h('div', { class: 'legend' },
    h('p', {}, dot('eye'), 'you ', dot('full'), 'your path ', dot('hollow'), 'elsewhere ', dot('square'), 'folded'),
    h('p', { class: 'narrow' }, 'Tap a round, then “Fork here”: a new branch with its data.'),
    h('p', { class: 'wide' }, 'Click a round to see that moment. ', h('kbd', {}, 'F'), ' forks it with its data, ', h('kbd', {}, 'C'), ' compares two branches.'));
}
