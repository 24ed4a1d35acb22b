/** Which branches of a session run, ask or failed. */

import { hasFailed, isStopped } from './rounds.js';

/** Return whether nothing runs on a branch and its last round failed. */
export function isFailedBranch(session, branch) {
  const last = session.tree.get(branch)?.own.at(-1);
  return session.stateOf(branch) === 'idle' && !isStopped(session, last?.round_id) && hasFailed(last, session.rounds.get(last?.round_id));
}

/** Return the branches that are `running`, `asks` or `failed`, in the order of the outline. */
export function branchesIn(session, state) {
  const isIn = (name) => (state === 'failed' ? isFailedBranch(session, name) : session.stateOf(name) === state);
  return session.branches.map((one) => one.name).filter(isIn);
}
