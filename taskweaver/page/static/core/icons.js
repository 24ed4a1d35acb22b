/** Icons of 16 px, drawn for the page: paths of one stroke. */

import { h } from './dom.js';

const PATHS = {
  fork: 'M4 2.5v11M4 8.5c0-3 8-.5 8-4.5M4 2.5h0M12 2.5v1.5M2.5 3.5a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M2.5 13a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M10.5 3a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0',
  merge: 'M4 3v10M4 5c0 4 4 5 8 5M10 7.5l2.5 2.5-2.5 2.5',
  edit: 'M3 13l.7-2.8L10.8 3l2.2 2.2L5.8 12.3zM9.2 4.7l2.2 2.2',
  check: 'M3 8.5l3.2 3.2L13 4.8',
  cross: 'M4 4l8 8M12 4l-8 8',
  ask: 'M5.5 6a2.5 2.5 0 1 1 3.7 2.2c-.8.5-1.2 1-1.2 1.8M8 12.6v.4',
  warn: 'M8 3v6.5M8 12.3v.4',
  right: 'M6 4l4 4-4 4',
  down: 'M4 6l4 4 4-4',
  up: 'M4 10l4-4 4 4',
  stop: 'M4.5 4.5h7v7h-7z',
  open: 'M3 8a5 5 0 1 0 10 0a5 5 0 1 0-10 0',
  tree: 'M4 2.5v9.5h8M4 7h8M2.5 2.5h3M10.5 7h3M10.5 12h3',
  chat: 'M2.5 3.5h11v7h-6l-3 2.8v-2.8h-2z',
  data: 'M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.6h11M7 3v10',
  memory: 'M3 4.5c0-2 10-2 10 0v7c0 2-10 2-10 0zM3 4.5c0 2 10 2 10 0M3 8c0 2 10 2 10 0',
  search: 'M2.5 12.5l3.5-4 3 2 4.5-6M10.5 4.5h3v3',
  find: 'M3 7a4 4 0 1 0 8 0a4 4 0 1 0-8 0M10 10l3.5 3.5',
  compare: 'M2.5 3h4.5v10h-4.5zM9 3h4.5v10h-4.5z',
  file: 'M4 2.5h5l3 3v8h-8zM9 2.5v3h3',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7',
  save: 'M8 2.5v7.5M5 7.5l3 3 3-3M3 13h10',
  laptop: 'M3.5 3.5h9v6.5h-9zM2 12.5h12',
  cloud: 'M4.5 12.5a2.7 2.7 0 0 1 .2-5.4a3.6 3.6 0 0 1 6.9.8a2.3 2.3 0 0 1-.3 4.6z',
  lines: 'M3 4.5h10M3 8h7M3 11.5h4',
  share: 'M9.5 3h3.5v3.5M13 3L7.5 8.5M11 9.5V13H3V5h3.5',
  gear: 'M5.5 8a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M8 2.5v3M8 10.5v3M2.5 8h3M10.5 8h3',
  upload: 'M8 10V2.5M5 5.5l3-3 3 3M3 13h10',
  more: 'M3 8h.5M8 8h.5M12.7 8h.5',
  undo: 'M6 4L3 7l3 3M3 7h6.5a3.3 3.3 0 0 1 0 6.5H7',
};

/** Return an icon, with a place if it is part of a drawing; it is silent, so a word or a label stands beside it. */
export function icon(name, place = {}) {
  return h('svg', { class: 'icon', viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true', ...place }, h('path', { d: PATHS[name] }));
}

const STATES = {
  running: ['spinner', 'running'],
  asks: ['ask', 'asks you'],
  failed: ['cross', 'failed'],
  merged: ['merge', 'merged'],
  queued: ['open', 'queued'],
  stopped: ['stop', 'stopped'],
  done: ['check', 'done'],
};

/** Return the sign of work under way: a ring that turns, or stands still with its word. */
export function spinner() {
  return h('span', { class: 'spinner', 'aria-hidden': 'true' });
}

/** Return the word of a state. */
export function stateWord(state) {
  return STATES[state][1];
}

/** Return a state as colour, sign and word. */
export function stateTag(state, text = stateWord(state)) {
  const sign = state === 'running' ? spinner() : icon(STATES[state][0]);
  return h('span', { class: `state ${state}` }, sign, h('span', {}, text));
}

/** Return the hint of a key, which touch screens do not show. */
export function keyHint(text) {
  return h('kbd', { 'aria-hidden': 'true' }, text);
}
