/** The session that is open: its tree, its rounds, and what runs, waits and asks in it. */

import { announce } from '../core/announce.js';
import * as api from '../core/api.js';
import { changed } from '../core/loop.js';
import { follow } from '../core/stream.js';
import { roundTitle, titleLine } from '../core/words.js';
import { ownerOf, pathOf, titled, treeOf } from './paths.js';
import { applyEvent, newRound, storedRound } from './rounds.js';

const PAGE = 30;
const MORE = 50;
const MOST_IN_DOCUMENT = 200;

/** A session as the server has it; every change of it is drawn. */
export class SessionModel {
  constructor(id) {
    this.id = id;
    this.where = `sessions/${api.path(id)}`;
    this.title = '';
    this.branches = [];
    this.index = [];
    this.merges = [];
    this.tree = new Map();
    this.rounds = new Map();
    this.messages = [];
    this.asking = [];
    this.artifacts = new Map();
    this.picturesSeen = 0;
    this.reloads = 0;
    this.unread = new Set();
    this.stopped = new Set();
    this.windows = new Map();
    this.isLoaded = false;
    this.problem = null;
  }

  /** Read the state with the rounds that a place shows, and follow the events after it. Raises Problem. */
  async load(place) {
    // The view is read first: what changes while the others are read comes after its numbers.
    const view = await api.get(this.where);
    const branch = view.branches.find((one) => (place.branch ? one.name === place.branch : one.is_current));
    const end = place.round ?? branch?.rounds ?? 0;
    const first = Math.max(1, end - PAGE + 1);
    const [index, messages, asking, page] = await Promise.all([
      api.get(`${this.where}/rounds`), api.get(`${this.where}/messages`), api.get(`${this.where}/confirmations`),
      end ? this.page(branch.name, first, end).catch(() => null) : null,
    ]);
    this.setView(view);
    this.setIndex(index.rounds, index.merges);
    if (page) this.keepPage(page, branch.name);
    messages.messages.forEach((one) => this.noteStop(one));
    this.messages = messages.messages.filter((one) => ['queued', 'running'].includes(one.state));
    Object.assign(this, { asking: asking.confirmations, isLoaded: true });
    follow(this.id, view.open_event, view.last_change);
    this.loadUsage();
    changed();
  }

  /** A picture came, or cannot be shown: the rounds that have it are drawn again. */
  pictureCame() {
    this.picturesSeen += 1;
    changed();
  }

  setView(view) {
    this.title = view.title;
    this.branches = view.branches;
    this.tree = treeOf(this.branches, this.index, this.merges);
  }

  setIndex(rounds, merges = this.merges) {
    this.index = rounds;
    this.merges = merges;
    this.tree = treeOf(this.branches, rounds, merges);
  }

  /** Return the rounds that a branch sees. */
  path(branch) {
    if (this.pathsOf !== this.tree) {
      this.paths = new Map();
      this.pathsOf = this.tree;
    }
    if (!this.paths.has(branch)) this.paths.set(branch, pathOf(this.tree, branch));
    return this.paths.get(branch);
  }

  /** Return the title, or what stands for it. */
  get name() {
    return this.title || roundTitle(this.index[0]?.title ?? 'New session');
  }

  /** Return the state of a branch: `idle`, `running` or `asks`. */
  stateOf(branch) {
    if (this.asking.some((one) => one.branch === branch)) return 'asks';
    if (this.messages.some((one) => one.branch === branch && one.state === 'running')) return 'running';
    return 'idle';
  }

  /** Return the part of a path that is in the document: `{first, last}`, numbers from 1. */
  windowOf(branch, number) {
    const key = `${branch}/${number ?? ''}`;
    const end = number ?? this.path(branch).length;
    let found = this.windows.get(key);
    if (!found) {
      found = { first: Math.max(1, end - PAGE + 1), last: end };
      this.windows.set(key, found);
    }
    const isAtEnd = found.last >= (found.end ?? end);
    if (isAtEnd) found.last = end;
    found.end = end;
    return found;
  }

  /** Show more rounds above or below; those at the other end leave the document. */
  extend(branch, number, direction) {
    const window = this.windowOf(branch, number);
    if (direction < 0) {
      window.first = Math.max(1, window.first - MORE);
      window.last = Math.min(window.last, window.first + MOST_IN_DOCUMENT - 1);
    } else {
      window.last = Math.min(window.end, window.last + MORE);
      window.first = Math.max(window.first, window.last - MOST_IN_DOCUMENT + 1);
    }
    changed();
  }

  /** Load the rounds of a window that are not here yet. */
  async fill(branch, number) {
    const { first, last } = this.windowOf(branch, number);
    const path = this.path(branch).slice(first - 1, last);
    const missing = path.filter((one) => !this.rounds.has(one.round_id));
    const key = `${branch}/${missing[0]?.number}`;
    if (!missing.length || this.filling === key) return;
    this.filling = key;
    try {
      this.keepPage(await this.page(branch, missing[0].number, missing.at(-1).number), branch);
    } catch (error) {
      this.problem = error;
    } finally {
      this.filling = null;
    }
    changed();
  }

  /** Read rounds of a branch, from one number to another. */
  page(branch, first, last) {
    return api.get(`${this.where}/branches/${api.path(branch)}/rounds`, { first, limit: Math.min(100, last - first + 1) });
  }

  keepPage(page, branch) {
    page.rounds.forEach((data, at) => this.keepStored(data, ownerOf(this.tree, branch, page.first + at)));
    this.loadArtifacts(branch);
  }

  /** Take a stored round in place of the one that was built from events. */
  keepStored(data, branch) {
    const before = this.rounds.get(data.id);
    if (before && before.state !== 'created' && before.isStored) return;
    const made = storedRound(data, branch, before);
    made.isStored = data.state !== 'created';
    // Events of a round that runs are read from its beginning, and build it anew.
    this.rounds.set(data.id, made);
  }

  async loadArtifacts(branch) {
    const found = await api.get(`${this.where}/artifacts`, { branch }).catch(() => null);
    if (!found) return;
    for (const one of found.artifacts) this.artifacts.set(`${one.round_id}/${one.path}`, one);
    changed();
  }

  async loadUsage() {
    this.cost = (await api.get(`${this.where}/usage`).catch(() => null))?.session_cost ?? 0;
    changed();
  }

  /** Handle an event of the stream. */
  handle(kind, data) {
    if (!('type' in data)) this.handleChange(kind, data);
    else if (data.round_id) this.handleRound(data);
    changed();
  }

  handleChange(kind, data) {
    if (data.session_id !== this.id) return;
    if (kind === 'session_renamed') {
      this.title = data.title;
      this.reload(); // an answer that is on its way may have the title before
    }
    if (kind === 'session_deleted') this.problem = new api.Problem(404, 'deleted', 'This session was deleted in another tab.');
    if (kind.startsWith('branch_')) this.reload();
    if (kind.startsWith('message_')) this.handleMessage(data);
  }

  async handleMessage({ message_id: id, branch, state, round_id: round }) {
    const known = this.messages.find((one) => one.message_id === id);
    if (known && ['queued', 'running'].includes(state)) Object.assign(known, { state, round_id: round });
    else if (['queued', 'running'].includes(state)) {
      const message = { message_id: id, branch, state, round_id: round, text: '' };
      this.messages.push(message);
      message.text = (await this.message(id)).text;
    } else {
      this.messages = this.messages.filter((one) => one.message_id !== id);
      if (state === 'failed' && !round) this.refused = (await this.message(id)).answer;
      if (round && state === 'stopped') this.noteStop(await this.message(id));
      if (round && !this.rounds.has(round)) this.reload();
    }
    changed();
  }

  /** Note a round that a person stopped: one that ended with its server was cut off. */
  noteStop({ state, round_id: round, answer }) {
    if (state === 'stopped' && round && !/^The server /.test(answer)) this.stopped.add(round);
  }

  async message(id) {
    return api.get(`${this.where}/messages/${api.path(id)}`).catch(() => ({ text: '', answer: '' }));
  }

  handleRound(event) {
    let round = this.rounds.get(event.round_id);
    if (this.isOver(event.round_id, round)) return;
    if (event.type === 'round_start') round = this.begin(event);
    if (!round) {
      // It began before this tab looked: its stored form comes with the next page.
      if (event.type === 'round_end') this.finish(event);
      return;
    }
    applyEvent(round, event);
    if (event.type === 'post_confirmation_request') this.readAsking(round);
    if (event.type === 'post_confirmation_response') this.asking = this.asking.filter((one) => one.confirmation_id !== event.extra.id);
    if (event.type === 'post_attachment_update' && event.extra.type === 'artifact_paths') this.loadArtifacts(round.branch);
    if (event.type === 'round_end') this.finish(event);
  }

  /** Whether a round has ended, and its events are read again. The index may know of an end whose event is still to come. */
  isOver(id, round) {
    return round?.isStored || (round?.state !== 'created' && (this.index.find((one) => one.round_id === id)?.state ?? 'created') !== 'created');
  }

  begin(event) {
    const round = newRound(event.round_id, event.branch, event.msg, event.at);
    this.rounds.set(round.id, round);
    if (!this.index.some((one) => one.round_id === round.id)) {
      const number = this.path(event.branch).length + 1;
      const title = titleLine(round.question).slice(0, 60);
      this.setIndex([...this.index, { round_id: round.id, branch: event.branch, number, title, state: 'created', forks: [] }]);
    }
    announce('Answer started.');
    return round;
  }

  async readAsking(round) {
    this.asking = (await api.get(`${this.where}/confirmations`).catch(() => null))?.confirmations ?? this.asking;
    if (this.stateOf(round.branch) === 'asks') announce(`${titled(this, round.branch)} asks you.`); // not of a request that is read again
    changed();
  }

  async finish(event) {
    const round = this.rounds.get(event.round_id);
    const entry = this.index.find((one) => one.round_id === event.round_id);
    if (!entry || this.tree.get(event.branch)?.own.at(-1)?.round_id === event.round_id) this.asking = this.asking.filter((one) => one.branch !== event.branch); // what waits is of the last round
    if (entry) {
      entry.state = round?.state ?? 'finished';
      this.tree = treeOf(this.branches, this.index, this.merges);
      this.unread.add(event.round_id);
    }
    if (round) announce(round.state === 'failed' ? 'The answer failed.' : `The answer is finished: ${round.posts.at(-1)?.message.split(/\s+/).length ?? 0} words.`);
    await this.store(event);
  }

  async store(event) {
    const number = this.index.find((one) => one.round_id === event.round_id)?.number;
    if (!number) return this.reload();
    const where = `${this.where}/branches/${api.path(event.branch)}/rounds`;
    const page = await api.get(where, { first: number, limit: 1 }).catch(() => null);
    const data = page?.rounds[0];
    if (data?.id === event.round_id) this.keepStored(data, event.branch);
    this.loadArtifacts(event.branch);
    this.loadUsage();
    return this.reload();
  }

  /** Read branches and index again; rounds that began while it was read stay, also those that ended. */
  async reload() {
    this.reloads += 1;
    const number = this.reloads;
    const before = new Set(this.index.map((one) => one.round_id));
    const [view, index] = await Promise.all([api.get(this.where), api.get(`${this.where}/rounds`)]).catch(() => []);
    if (!view || number !== this.reloads) return;
    const known = new Set(index.rounds.map((one) => one.round_id));
    const begun = this.index.filter((one) => !known.has(one.round_id) && (!before.has(one.round_id) || this.rounds.get(one.round_id)?.state === 'created'));
    Object.assign(this, { index: [...index.rounds, ...begun], merges: index.merges });
    this.setView(view);
    changed();
  }
}
