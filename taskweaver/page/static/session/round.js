/** A round in the conversation: its question, plan, cells and answer. */

import { branchName, button, failure, withCode } from '../core/bits.js';
import { saveText } from '../core/clipboard.js';
import { h, memo } from '../core/dom.js';
import { icon, spinner, stateTag } from '../core/icons.js';
import { count, firstLine, roundTitle, seconds, seen, titleLine } from '../core/words.js';
import { chooseModel, mayChoose } from '../models/chip.js';
import { choices } from '../start/choices.js';
import { markdown } from '../text/markdown.js';
import { ui } from '../state.js';
import { ask, goTo, openFork } from './actions.js';
import { cell } from './cell.js';
import { undoRound } from './changes.js';
import { titled } from './paths.js';
import { isStopped } from './rounds.js';
import { answerTools, extremes, result } from './result.js';
import { viewOf } from './view.js';

const CODE_QUESTION = /^Run this:\n```\w*\n[\s\S]*?```\s*$/;
/** The analyst's words for a terminal: here a button stands for them, once in a session. */
const NO_MODEL = /\n*^I am the built-in offline analyst[^\n]*$/m;
const TITLE_CHARS = 60;
const FOLDED_ANSWER_CHARS = 1_000_000;

/**
 * Return a round; one that is over is built again only when it changed. Without an id in a side of a
 * comparison (`isSide`): the other side may have a round of the same number.
 */
export function round(session, entry, context) {
  const found = session.rounds.get(entry.round_id);
  if (!found) return h('article', { key: entry.round_id, class: 'round waiting' }, head(session, entry, null, context), h('h3', { class: 'question' }, roundTitle(entry.title)));
  const forks = [entry.branch, ...entry.forks].map((name) => `${titled(session, name)}:${session.stateOf(name)}:${session.tree.get(name)?.own.length}`).join();
  const figures = `${session.artifacts.size} ${session.picturesSeen}`;
  const open = ui.openCells.get(found.id) ?? '';
  found.isStopped = isStopped(session, found.id);
  const isRunning = found.state === 'created' && session.stateOf(entry.branch) !== 'idle';
  const asks = isRunning ? session.asking.map((one) => one.confirmation_id).join() : '';
  return memo(entry.round_id, [found, found.version, found.isStopped, forks, figures, asks, open, ui.allCode, context.branch, context.isPast, context.number === entry.number, context.isSide, session.branches?.length, isRunning], () => built(session, entry, found, context, isRunning));
}

function built(session, entry, found, context, isRunning) {
  const view = viewOf(found);
  // A plan of a step or two says no more than its cells.
  const isPlain = !session.isAttempt && view.answer?.isDone && view.plan.filter((step) => step.state !== 'dropped').length < 3;
  const isHalted = found.state === 'created' && !isRunning;
  return h('article', { class: `round${found.state === 'created' ? '' : ' over'}`, id: context.isSide ? null : `round-${entry.number}`, 'data-number': entry.number, 'aria-label': `Round ${entry.number} of ${titled(session, entry.branch)}` },
    head(session, entry, found, context, isRunning, view),
    question(found.question),
    isPlain ? null : plan(view.plan),
    view.items.map((item) => itemOf(session, found, item, Boolean(view.answer?.isDone))),
    view.answer ? answer(session, found, view.answer, entry, context) : null,
    facts(session, view.facts, entry, context, found),
    found.warnings.map((text) => h('p', { class: 'warning' }, icon('warn'), seen(text))),
    found.isStopped ? stopped(session, entry, found, context) : null,
    found.error && !found.isStopped ? failure('The round failed', seen(found.error), ...retry(session, entry, found, context)) : null,
    isHalted && !found.error && !found.isStopped ? h('p', { class: 'muted' }, icon('stop'), 'This round was cut off.') : null,
    forkChips(session, entry, context));
}

function stopped(session, entry, found, context) {
  const took = found.startedAt && found.endedAt ? ` after ${seconds((found.endedAt - found.startedAt) / 1000)}` : '';
  const isLast = !context.isPast && entry.number === context.number;
  return [h('p', {}, `You stopped it${took}, so there is no answer. What had already run is kept${isLast ? '; Undo takes it back' : ''}.`),
    isLast ? h('div', { class: 'row' }, retry(session, entry, found, context), button('Undo', () => undoRound(session, { branch: context.branch, total: entry.number }), { kind: 'small', sign: 'undo' })) : null];
}

function retry(session, entry, found, context) {
  if (context.isPast || session.isReadOnly) return [];
  const isModel = /model|endpoint|api key|connect/i.test(found.error) && mayChoose();
  return [button('Ask again', () => ask(session, context.branch, found.question), { kind: 'small' }), isModel ? button('Choose another model', chooseModel, { kind: 'small' }) : null];
}

function head(session, entry, found, context, isRunning = false, view = null) {
  const colour = session.tree.get(entry.branch)?.colour ?? 0;
  return h('header', { class: 'round-head' },
    branchName(titled(session, entry.branch), colour), h('span', { class: 'muted' }, `round ${entry.number}`),
    h('span', { class: 'rule' }),
    isRunning ? stateTag(session.stateOf(entry.branch) === 'asks' ? 'asks' : 'running') : null,
    found?.isStopped ? stateTag('stopped') : entry.state === 'failed' || found?.state === 'failed' ? stateTag('failed') : null,
    view?.answer?.isDone || session.isReadOnly ? null : button('Fork here', () => openFork(session, context.branch, entry.number), { kind: 'quiet', sign: 'fork' }));
}

function question(text) {
  const isCode = CODE_QUESTION.test(text);
  const title = h('h3', { class: 'question' }, roundTitle(isCode ? firstLine(titleLine(text), TITLE_CHARS) : titleLine(text)));
  if (isCode) return title;
  const rest = text.trim().split('\n').slice(1);
  return h('div', { class: 'asked' }, title, rest.length ? h('p', { class: 'question-more' }, seen(rest.join('\n').trim())) : null);
}

const STEP_SIGNS = { done: () => icon('check'), running: spinner, open: () => icon('open'), failed: () => icon('cross'), dropped: () => icon('more') };
const STEP_WORDS = { done: 'done', running: 'now', open: 'to come', failed: 'not done', dropped: 'no longer planned' };

function plan(steps) {
  if (!steps.length) return null;
  return h('ol', { class: 'plan', 'aria-label': 'Plan' }, steps.map((step) => h('li', { class: `step ${step.state}` },
    STEP_SIGNS[step.state](), h('span', { class: 'unseen' }, `${STEP_WORDS[step.state]}: `), h('span', {}, withCode(step.text)))));
}

function itemOf(session, found, item, isAnswered) {
  if (item.kind === 'cell') return cell(session, found, item, isAnswered);
  if (item.kind === 'draft') return h('div', { key: item.id, class: 'answer' }, markdown(item.text));
  if (item.kind === 'order') return h('p', { key: item.id, class: 'order muted' }, h('b', {}, `${item.from} to ${item.to}: `), seen(item.text.slice(0, 400)));
  if (item.kind === 'retry') return h('p', { key: item.id, class: 'order muted' }, icon('warn'), 'The model was asked again: ', seen(item.text.slice(0, 300)));
  return failure('A step failed', seen(item.text));
}

function answer(session, found, view, entry, context) {
  const isHuge = view.whole.length > FOLDED_ANSWER_CHARS;
  const isHint = NO_MODEL.test(view.text) && !session.isReadOnly && mayChoose();
  if (isHint) session.hintedIn ??= found.id;
  const text = (isHuge ? view.text.slice(0, 20_000) : view.text).replace(isHint ? NO_MODEL : '', '');
  return h('div', { key: view.id, class: `answer${view.isFailure ? ' no-answer' : ''}` },
    view.reading ? h('p', { class: 'reading' }, markdown(view.reading)) : null,
    view.isDone && view.result && (view.reading || !text.trim()) ? extremes(view.result.table, view.reading) : null,
    text.trim() ? markdown(text, view.unsupported) : null,
    view.result ? result(session, found, view.result) : null,
    isHuge ? h('p', { class: 'muted' }, `${count(view.whole.length, 'character')}; the beginning is shown. `, button('Save', () => saveText(view.whole, `round-${entry.number}.md`), { kind: 'small', sign: 'save' })) : null,
    view.unsupported.length ? h('p', { class: 'note' }, icon('warn'), `${count(view.unsupported.length, 'number')} (underlined) in no outcome of this session.`) : null,
    isHint && session.hintedIn === found.id ? h('div', { class: 'row' }, button('Choose a model', chooseModel, { kind: 'primary' })) : null,
    view.isDone ? answerTools(session, found, entry, context, view) : null,
    view.isDone ? offers(session, view.offers, entry, context) : null);
}

/** Facts that were kept or forgotten; the last round asks about them. */
function facts(session, lines, entry, context, found) {
  const isOpen = lines.some((one) => one.asks) && found.state === 'finished' && !context.isPast && !context.isSide && entry.number === context.number && !session.isReadOnly;
  const say = (word) => button(word, () => ask(session, context.branch, word), { kind: 'small' });
  return lines.length ? h('div', { class: 'facts-note' }, lines.map((one) => h('p', { class: 'muted' }, seen(one.text))), isOpen ? h('div', { class: 'row' }, say('Yes'), say('No')) : null) : null;
}

/** What can be asked next, below the last round. */
function offers(session, items, entry, context) {
  const isLast = !context.isPast && !context.isSide && entry.number === context.number && !session.isReadOnly;
  if (!items.length || !isLast) return null;
  return choices(items.map((one) => ({ text: one.text, result: one.shows })), (text) => ask(session, context.branch, text), 'Ask next', items.every((one) => one.text.length < 32) ? 'as-chips' : '');
}

function forkChips(session, entry, context) {
  const others = entry.forks.filter((name) => name !== context.branch && session.tree.has(name));
  if (!others.length) return null;
  return h('div', { class: 'fork-chips' }, others.map((name) => {
    const node = session.tree.get(name);
    const state = session.stateOf(name);
    return h('button', { key: name, type: 'button', class: 'fork-chip', onclick: () => goTo(session, name) },
      icon('fork'), h('span', {}, `Forked from round ${entry.number}: `), branchName(titled(session, name), node.colour),
      h('span', { class: 'muted' }, count(node.own.length, 'round')), state === 'idle' ? null : stateTag(state));
  }));
}

