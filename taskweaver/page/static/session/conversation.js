/** The conversation of a branch up to a moment; it follows the end while the end is in view. */

import { button, empty, loading } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon, spinner } from '../core/icons.js';
import { afterDraw, changed } from '../core/loop.js';
import { count, seen } from '../core/words.js';
import { later } from '../later.js';
import { noticeBar } from '../notice.js';
import { withdraw } from './actions.js';
import { titled } from './paths.js';
import { round } from './round.js';

const states = new Map(); // of each scrolled conversation: whether it follows, and what it did not show

/** Return the state of the conversation of a slot (`main`, or a side of a comparison). */
function following(slot) {
  if (!states.has(slot)) states.set(slot, { isOn: true, isEndSeen: true, fresh: 0, seenCount: 0, key: '' });
  return states.get(slot);
}

/** Return the conversation at a moment: `{branch, number, isPast}`. */
export function conversation(session, moment, slot = 'main') {
  const state = following(slot);
  const key = `${session.id}/${moment.branch}/${moment.isPast ? moment.number : ''}`;
  // Sides of a comparison are read from the first round in which they differ, until one moves in them.
  if (state.key !== key) Object.assign(state, { key, isOn: slot === 'main', isMoved: slot === 'main', isEndSeen: slot === 'main', fresh: 0, seenCount: 0 });
  const window = session.windowOf(moment.branch, moment.isPast ? moment.number : null);
  session.fill(moment.branch, moment.isPast ? moment.number : null);
  const path = session.path(moment.branch);
  const shown = path.slice(window.first - 1, window.last);
  const waiting = moment.isPast ? [] : session.messages.filter((one) => one.branch === moment.branch && isWaiting(session, one));
  const cards = (number) => later.cards.module?.cardsAfter(session, moment.branch, number, !moment.isPast && number === path.length && !waiting.length);
  noteFresh(state, session, shown);
  return h('div', { class: 'conversation-box', key: slot === 'main' ? slot : key },
    h('div', { class: 'conversation', role: 'log', 'aria-label': `Conversation of ${titled(session, moment.branch)}`, 'aria-live': 'off', tabindex: 0, 'data-slot': slot, mount: (element) => watch(element, state), update: (element) => follow(element, state) },
      h('div', { class: 'column' },
        window.first > 1 ? edge(session, moment, slot, -1, `${count(window.first - 1, 'earlier round')}`) : null,
        !session.isLoaded ? loading(6) : null,
        session.isLoaded && !path.length && !waiting.length && !session.cards?.length ? beginning() : null,
        window.first === 1 ? cards(0) : null,
        shown.map((entry) => [round(session, entry, { ...moment, isSide: slot !== 'main' }), cards(entry.number)]),
        waiting.map((one) => queued(session, one)),
        window.last < window.end ? edge(session, moment, slot, 1, `${count(window.end - window.last, 'later round')}`) : null,
        h('div', { class: 'end-mark', key: 'end' }))),
    h('div', { class: 'foot' }, (slot === 'main' && noticeBar(true)) || (moment.isPast ? null : statusLine(session, moment))),
    state.isOn || state.isEndSeen || moment.isPast ? null : h('button', { type: 'button', class: 'to-end', onclick: () => toEnd(slot) }, icon('down'), state.fresh ? `${count(state.fresh, 'new part')}` : 'To the end', h('kbd', { 'aria-hidden': 'true' }, 'End')));
}

/** What is being done now: its line is kept, so that its coming and going moves nothing. */
function statusLine(session, moment) {
  if (session.stateOf(moment.branch) === 'idle') return null;
  const round = session.rounds.get(session.path(moment.branch).at(-1)?.round_id);
  const text = round?.state === 'created' ? round.posts.at(-1)?.status || 'working' : 'beginning';
  return h('p', { class: 'status-line muted' }, spinner(), `${text[0].toUpperCase()}${text.slice(1)}`);
}

function beginning() {
  return empty('What do you want to know?', h('p', { class: 'muted' }, 'Drop a file here, or ask below. Every answer becomes a round on the left. Any round can be forked with its data.'));
}

function isWaiting(session, message) {
  return message.state === 'queued' || !message.round_id || !session.rounds.has(message.round_id);
}

function queued(session, message) {
  const text = seen(message.text ?? '').split('\n')[0];
  return h('article', { key: message.message_id, class: 'round queued' }, h('h3', { class: 'question' }, text),
    h('p', { class: 'muted row' }, message.state === 'queued' ? 'Waits for its turn. ' : 'Begins. ', message.state === 'queued' ? button('Withdraw', () => withdraw(session, message.message_id), { kind: 'small' }) : null));
}

function edge(session, moment, slot, direction, text) {
  const window = session.windowOf(moment.branch, moment.isPast ? moment.number : null);
  const show = () => {
    keepPlace(slot, direction);
    session.extend(moment.branch, moment.isPast ? moment.number : null, direction);
  };
  const mount = (element) => {
    const observer = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && !window.isNarrowed && show(), { rootMargin: '200px' });
    observer.observe(element);
    return () => observer.disconnect();
  };
  return h('p', { class: 'edge', key: `edge${direction}`, mount }, button(`Show ${text}`, show, { kind: 'quiet' }));
}

/** What is read stays where it is when rounds come above it; at the very top no browser does that. */
function keepPlace(slot, direction) {
  const element = document.querySelector(`.conversation[data-slot="${slot}"]`);
  if (direction > 0 || !element) return;
  const below = element.scrollHeight - element.scrollTop;
  afterDraw(() => {
    element.scrollTop = element.scrollHeight - below;
  });
}

function noteFresh(state, session, shown) {
  const last = session.rounds.get(shown.at(-1)?.round_id);
  if (!last) return;
  const parts = shown.length * 100 + last.posts.length;
  if (state.isOn) state.fresh = 0;
  else if (state.seenCount && parts > state.seenCount) state.fresh += 1;
  state.seenCount = parts;
}

/** Whether the end is in view is observed, not computed; then new parts are followed. */
function watch(element, state) {
  const mark = element.querySelector('.end-mark');
  const observer = new IntersectionObserver(([entry]) => {
    const isOther = state.isEndSeen !== entry.isIntersecting;
    state.isEndSeen = entry.isIntersecting;
    const isBack = state.isEndSeen && !state.isOn && state.isMoved && !hasSelection(element);
    state.isOn ||= isBack;
    if (isBack || isOther) changed();
  }, { root: element, rootMargin: '0px 0px 24px 0px' });
  observer.observe(mark);
  const leave = (event) => {
    state.isMoved = true;
    const isUp = event.type === 'wheel' ? event.deltaY < 0 : ['ArrowUp', 'PageUp', 'Home'].includes(event.key);
    if (isUp || event.type === 'touchmove') stopFollowing(element, state);
  };
  // A press on the element itself is one on its scroll bar.
  const onPress = (event) => {
    state.isMoved = true;
    if (event.target === element) stopFollowing(element, state);
  };
  const onSelect = () => hasSelection(element) && stopFollowing(element, state);
  for (const kind of ['wheel', 'touchmove', 'keydown']) element.addEventListener(kind, leave, { passive: true });
  element.addEventListener('pointerdown', onPress);
  document.addEventListener('selectionchange', onSelect);
  // Pictures and folds change the height without a drawing.
  const sizes = new ResizeObserver(() => follow(element, state));
  sizes.observe(element.firstChild);
  return () => {
    observer.disconnect();
    sizes.disconnect();
    document.removeEventListener('selectionchange', onSelect);
  };
}

function hasSelection(element) {
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && element.contains(selection.anchorNode));
}

function stopFollowing(element, state) {
  if (!state.isOn || element.scrollHeight <= element.clientHeight) return;
  state.isOn = false;
  changed();
}

/** Show the end; of an answer that does not fit below its question, the end of its result. */
function follow(element, state) {
  if (!state.isOn) return;
  const last = [...element.querySelectorAll('.round')].at(-1);
  const shown = last?.matches('.over') && last.querySelector('.answer .result, .answer .result-figures');
  const place = (edge) => edge - element.getBoundingClientRect().top + element.scrollTop;
  if (!shown) element.scrollTop = element.scrollHeight;
  else element.scrollTop = Math.max(place(last.getBoundingClientRect().top), place(shown.getBoundingClientRect().bottom) + 8 - element.clientHeight);
}

/** Go to the end of a conversation and follow it again. */
export function toEnd(slot = 'main') {
  const state = following(slot);
  Object.assign(state, { isOn: true, fresh: 0 });
  changed();
}
