/** The conversation of an attempt: its round, from the events of the run while it grows, then as it is stored. */

import { empty } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { follow } from '../core/stream.js';
import { conversation } from '../session/conversation.js';
import { treeOf } from '../session/paths.js';
import { applyEvent, newRound, storedRound } from '../session/rounds.js';

let own = null;

/** A session as far as a conversation needs it: one branch with one round, which nobody can go on with here. */
function attemptSession(id, branch) {
  const session = {
    id, branch, where: '', asking: [], messages: [], artifacts: new Map(), rounds: new Map(), entries: [], tree: new Map(),
    isReadOnly: true, isAttempt: true, isLoaded: true, isRunning: false, isFollowed: false, picturesSeen: 0,
    fill() {},
    path: () => session.entries,
    stateOf: () => (session.isRunning ? 'running' : 'idle'),
    windowOf: () => ({ first: 1, last: session.entries.length, end: session.entries.length }),
  };
  return session;
}

/** Take a round as the one that is shown: an attempt that was cut off is made again in another. */
function keep(round) {
  const { branch } = own;
  own.rounds = new Map([[round.id, Object.assign(round, { isAttempt: true })]]);
  own.entries = [{ round_id: round.id, branch, number: 1, title: round.question, state: round.state, forks: [] }];
  own.tree = treeOf([{ name: branch, parent: null, state: 'idle' }], own.entries);
}

/** Take an attempt of a run as the server has it; without its round, that is built from events. */
export function readTalk(run, { branch, round }) {
  const id = `${run}/${branch}`;
  if (own?.id !== id) leaveTalk();
  own ??= attemptSession(id, branch);
  if (round) keep(storedRound(round, branch, own.rounds.get(round.id)));
  if (own.isFollowed === !round) return;
  own.isFollowed = !round;
  follow(round ? '' : id, 0);
}

/** Follow an attempt no longer. */
export function leaveTalk() {
  if (own?.isFollowed) follow('', 0);
  own = null;
}

/** Handle an event of the stream. */
export function heard(event) {
  if (!own || event.session_id !== own.id) return;
  // The beginning of a long round may be kept no longer.
  if (!own.rounds.has(event.round_id)) keep(newRound(event.round_id, event.branch, event.type === 'round_start' ? event.msg : '', event.at));
  applyEvent(own.rounds.get(event.round_id), event);
  changed();
}

/** Events of an attempt were lost: read those that are there. */
export function lost(id) {
  if (own?.id === id) leaveTalk();
}

/** Return the conversation of an attempt; `isRunning` says whether a search makes it. */
export function talk(isRunning) {
  if (!own || (!own.entries.length && !isRunning)) return empty('Nothing is kept of how it was made');
  own.isRunning = isRunning;
  own.isLoaded = own.entries.length > 0;
  return h('div', { class: 'talk' }, conversation(own, { branch: own.branch, number: 1, isPast: false, total: 1 }));
}
