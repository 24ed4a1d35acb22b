/** Rounds as the page has them: built from events while they run, and from the stored form. */

const NOTE = /^(?:files added|files removed|files changed|note|now on|variables)\b[^\n]*\n/i;

/** What is said of a post when its code begins to run, in attempts of a search its phases. */
const PHASES = new Set(['running code', 'download', 'coding', 'compile', 'run']);

const MOST_OUTPUT = 1_000_000; // the newest characters; an attempt may print for hours

/** Return a new round that runs. */
export function newRound(id, branch, query, at) {
  return {
    id, branch, question: query.replace(NOTE, ''), state: 'created', posts: [], error: '', warnings: [],
    startedAt: Date.parse(at), endedAt: null, version: 0,
  };
}

/** Return the round of the stored form; times that were seen while it ran are kept. */
export function storedRound(data, branch, before = null) {
  const seen = new Map((before?.posts ?? []).map((post) => [post.id, post]));
  const posts = (data.post_list ?? []).filter((post) => post.send_from !== 'User').map((post) => {
    const live = seen.get(post.id);
    const times = live ? { startedAt: live.startedAt, runAt: live.runAt, endedAt: live.endedAt } : {};
    return {
      id: post.id, from: post.send_from, to: post.send_to, message: post.message ?? '', output: '', status: '',
      isDone: true, error: '', asks: live?.asks ?? null, ...times,
      parts: (post.attachment_list ?? []).map((one) => ({ id: one.id, type: one.type, content: one.content, extra: one.extra })),
    };
  });
  return {
    id: data.id, branch, question: data.question ?? data.user_query, state: data.state, posts,
    error: before?.error ?? '', warnings: before?.warnings ?? [],
    startedAt: before?.startedAt ?? null, endedAt: before?.endedAt ?? null, version: (before?.version ?? 0) + 1,
  };
}

/** Change a round by one of its events; return whether something that is shown changed. */
export function applyEvent(round, event) {
  round.version += 1;
  if (event.post_id) return applyPost(postOf(round, event), event);
  if (event.type === 'round_error') round.error = event.msg;
  if (event.type === 'round_warning') round.warnings = [...round.warnings, event.msg];
  if (event.type === 'round_end') {
    round.endedAt = Date.parse(event.at);
    round.state = round.error ? 'failed' : 'finished';
    for (const post of round.posts) post.asks = null;
  }
  return true;
}

function postOf(round, event) {
  const known = round.posts.find((post) => post.id === event.post_id);
  if (known) return known;
  const made = {
    id: event.post_id, from: event.extra?.role ?? '', to: '', message: '', output: '', status: '', isDone: false,
    error: '', asks: null, startedAt: Date.parse(event.at), runAt: null, endedAt: null, parts: [],
  };
  round.posts.push(made);
  return made;
}

function applyPost(post, event) {
  const { msg, extra } = event;
  const handlers = {
    post_end: () => {
      post.isDone = true;
      post.status = '';
    },
    post_error: () => {
      post.error = msg;
    },
    post_status_update: () => {
      post.status = msg;
      if (PHASES.has(msg)) post.runAt ??= Date.parse(event.at);
    },
    post_send_to_update: () => {
      post.to = extra.role;
    },
    post_message_update: () => {
      post.message += msg;
    },
    post_message_restart: () => {
      post.message = '';
    },
    post_attachment_update: () => applyPart(post, event),
    post_execution_output: () => {
      post.output = (post.output + extra.text).slice(-MOST_OUTPUT);
    },
    post_confirmation_request: () => {
      post.asks = { id: extra.id, kinds: extra.kinds ?? [], content: msg };
    },
    post_confirmation_response: () => {
      post.asks = null;
      post.answered = extra.approved ? 'allowed' : 'denied';
    },
  };
  handlers[event.type]?.();
  return true;
}

function applyPart(post, { msg, extra, at }) {
  let part = post.parts.find((one) => one.id === extra.id);
  if (!part) {
    part = { id: extra.id, type: extra.type, content: '', extra: null };
    post.parts.push(part);
  }
  if (extra.replaces) part.content = '';
  part.content = extra.type === 'artifact_paths' ? msg.split(/,\s*|\n/).filter(Boolean) : part.content + msg;
  if (extra.extra) part.extra = extra.extra;
  if (extra.type === 'execution_status') post.endedAt = Date.parse(at);
}

/** Return the contents of the attachments of a kind. */
export function contents(post, type) {
  return post.parts.filter((part) => part.type === type).map((part) => part.content);
}

/** Return the last attachment of a kind as text. */
export function last(post, type) {
  return String(contents(post, type).at(-1) ?? '');
}

/** Return whether an entry of the index failed, or is code of the user whose cell failed, as far as its round is known. */
export function hasFailed(entry, round) {
  if (entry?.state === 'failed' || !round?.question.startsWith('Run this:')) return entry?.state === 'failed';
  const ran = round.posts.findLast((post) => last(post, 'execution_status'));
  return Boolean(ran) && last(ran, 'execution_status') === 'FAILURE';
}

/** Return whether a round was stopped by a person. */
export function isStopped(session, id) {
  return Boolean(session.stopped?.has(id)) || session.rounds.get(id)?.error === 'interrupted';
}
