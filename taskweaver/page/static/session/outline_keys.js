/** Keys in the outline, as in any tree. */

import { changed } from '../core/loop.js';
import { fold, openWay, ui } from '../state.js';
import { focusOn, goTo } from './actions.js';
import { renameBranch } from './changes.js';

/** Handle a key that was pressed in the outline. */
export function outlineKey(event, session, rows) {
  if (event.target.matches('input')) return;
  const items = rows.filter((row) => row.kind !== 'goes-on');
  const focused = event.target.closest('[data-row]')?.dataset.row ?? ui.treeFocus;
  const at = items.findIndex((row) => row.key === focused);
  const row = items[at] ?? items.find((one) => one.isHere) ?? items[0];
  const place = items.indexOf(row);
  const moves = {
    ArrowDown: () => items[place + 1],
    ArrowUp: () => items[place - 1],
    Home: () => items[0],
    End: () => items.at(-1),
    ArrowLeft: () => left(session, row, items, place),
    ArrowRight: () => right(session, row, items, place),
    Enter: () => enter(session, row),
    F2: () => void renameBranch(session, row.branch),
    ' ': () => enter(session, row),
  };
  const isLetter = event.key.length === 1 && /\p{L}/u.test(event.key);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (!(event.key in moves) && !(isLetter && event.shiftKey)) return;
  const next = event.key in moves ? moves[event.key]() : byLetter(items, place, event.key);
  event.preventDefault();
  event.stopPropagation();
  if (next) focusRow(next, rows);
}

function focusRow(row, rows) {
  ui.treeFocus = row.key;
  const scroll = document.querySelector('.tree-scroll');
  const height = scroll.firstChild.clientHeight / rows.length;
  const top = rows.indexOf(row) * height;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  if (top + height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + height - scroll.clientHeight;
  changed();
  focusOn(`[data-row="${CSS.escape(row.key)}"]`);
}

function left(session, row, items, place) {
  if (row.kind === 'branch' && !row.isFolded) return void setFold(session, row, true);
  return items.slice(0, place).findLast((one) => one.kind === 'branch' && (row.kind !== 'branch' ? one.branch === row.branch : one.depth < row.depth));
}

function right(session, row, items, place) {
  if (row.kind === 'branch' && row.isFolded) return void setFold(session, row, false);
  return items[place + 1];
}

function setFold(session, row, isFolded) {
  fold(session, row.branch, isFolded);
  changed();
}

function enter(session, row) {
  if (row.kind === 'branch') return void setFold(session, row, !row.isFolded);
  ui.pane = 'chat';
  goTo(session, row.branch, row.number);
  openWay(session);
  return null;
}

function byLetter(items, place, letter) {
  const text = (row) => (row.kind === 'branch' ? row.branch : row.title).toLowerCase();
  return [...items.slice(place + 1), ...items.slice(0, place)].find((row) => text(row).startsWith(letter.toLowerCase()));
}
