/** Changes of a session that are not questions: its title, and the end of its last round. */

import * as api from '../core/api.js';
import { changed } from '../core/loop.js';
import { fold, notify, openWay } from '../state.js';
import { attempt, goTo } from './actions.js';

/** Rename a session: its name in the bar becomes a field. */
export function renameSession(session) {
  session.isRenaming = true;
  changed();
}

/** Give a session the title that was typed. */
export function endRenaming(session, title) {
  session.isRenaming = false;
  const text = title.trim();
  if (text && text !== session.name) attempt(() => api.change(session.where, { title: text }));
  else changed();
}

/**
 * Undo the last round of a branch: go on a new branch that ends before it, with variables, files and
 * memory as they were. The round stays on its branch, so it can be taken back.
 */
export function undoRound(session, { branch, total }) {
  if (!total) return null;
  return attempt(async () => {
    const made = await api.post(`${session.where}/branches`, { source: branch, at_round: total - 1 });
    await session.reload();
    fold(session, made.name, false);
    goTo(session, made.name);
    openWay(session);
    notify(`Round ${total} is undone: you are on ${made.name}, which ends before it. It stays on ${branch}.`, { text: 'Take it back', run: () => goTo(session, branch) });
  });
}
