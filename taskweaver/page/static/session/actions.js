/** What a person does in a session: ask, stop, fork, confirm, undo, go somewhere. */

import * as api from '../core/api.js';
import { announce } from '../core/announce.js';
import { afterDraw, changed } from '../core/loop.js';
import { compareAddress, go, momentAddress } from '../core/route.js';
import { fold, here, notify, openWay, ui } from '../state.js';
import { branchesIn } from './branch_states.js';

/** Carry out work; a problem is shown as a notice. Return whether it went well. */
export async function attempt(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof api.Problem)) throw error;
    notify(error.message);
    announce(error.message);
    return false;
  } finally {
    changed();
  }
}

/** Beginning of a message that is code to run. */
export const RUN = /^\/run\s*\n?/;

/** Send a question, or code after `/run`, to a branch. */
export function ask(session, branch, text) {
  const what = RUN.test(text) ? { text: text.replace(RUN, ''), kind: 'code' } : { text: text.trim(), kind: 'ask' };
  return attempt(() => api.post(`${session.where}/messages`, { ...what, branch, message_id: `m-${crypto.getRandomValues(new Uint32Array(3)).join('-')}` }));
}

/** Stop the answer on a branch. */
export function stop(session, branch) {
  focusComposer(branch);
  return attempt(() => api.post(`${session.where}/stop`, { branch }));
}

/** Withdraw a question that waits. */
export function withdraw(session, id) {
  return attempt(() => api.remove(`${session.where}/messages/${api.path(id)}`));
}

/** Answer a request for confirmation; with yes, other code may run in place of the one it is about. */
export function confirm(session, id, answer, code = undefined) {
  return attempt(() => api.post(`${session.where}/confirmations/${api.path(id)}`, { answer, code }));
}

/** Go to a moment of a branch; the last round is its end. */
export function goTo(session, branch, number = null) {
  const total = session.path(branch).length;
  go(momentAddress(session.id, branch, number && number < total ? number : null));
}

/** Open the panel of a fork at a round, with a name that is free. */
export function openFork(session, branch, number, question = '') {
  const names = new Set(session.branches.flatMap((one) => [one.name, one.title]));
  let at = session.branches.length;
  while (names.has(`try-${at}`)) at += 1;
  ui.fork = { branch, number, name: `try-${at}`, question, preview: null, isBusy: false, problem: '', refused: '' };
  ui.pane = 'data';
  ui.panes.isDataHidden = false;
  changed();
  readPreview(session, ui.fork);
}

/** Close the panel of a fork; a phone shows the conversation again. */
export function closeFork() {
  ui.fork = null;
  ui.pane = 'chat';
  changed();
}

async function readPreview(session, fork) {
  const query = { at_round: fork.number };
  try {
    fork.preview = await api.get(`${session.where}/branches/${api.path(fork.branch)}/fork`, query);
  } catch (error) {
    fork.problem = error.message;
  }
  changed();
}

/** Make the fork of a panel, ask its first question, and go there. */
export async function makeFork(session, fork) {
  fork.isBusy = true;
  fork.refused = '';
  changed();
  try {
    const total = session.path(fork.branch).length;
    const made = await api.post(`${session.where}/branches`, { source: fork.branch, title: fork.name.trim(), at_round: fork.number < total ? fork.number : null });
    await session.reload();
    fold(session, made.name, false);
    if (made.why_restored) notify(`Variables of ${fork.name} are read from disk: ${made.why_restored}`);
    focusComposer(made.name);
    if (fork.question.trim()) await ask(session, made.name, fork.question.trim());
    ui.fork = null;
    ui.pane = 'chat';
    announce(`Forked: you are on ${fork.name}.`);
    goTo(session, made.name);
    openWay(session);
  } catch (error) {
    fork.refused = error.message;
    focusOn('.fork-panel input');
  }
  fork.isBusy = false;
  changed();
}

/** Go to the next branch that asks or runs, after the one that is shown. */
export function goToNext(session, states) {
  const { branch } = here(session);
  const names = states.flatMap((state) => branchesIn(session, state));
  if (!names.length) return;
  const next = names[(names.indexOf(branch) + 1) % names.length];
  ui.pane = 'chat';
  goTo(session, next);
  openWay(session);
}

/** Compare the branch that is shown with another one. */
export function compare(session, other) {
  const { branch } = here(session);
  if (other === branch) return;
  go(compareAddress(session.id, branch, other));
}

/** Give the focus to the composer of a branch once it is drawn. */
export function focusComposer(branch) {
  ui.composerFocus = branch;
  changed();
}

/** Give the focus to an element once it is drawn. */
export function focusOn(selector) {
  afterDraw(() => document.querySelector(selector)?.focus());
}
