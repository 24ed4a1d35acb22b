/** What is shown of a round: its plan, its cells in order, and its answer. */

import { firstLine } from '../core/words.js';
import { readTable } from '../text/plain_table.js';
import { contents, last } from './rounds.js';

const RUNNING = 'running';
/** Signs that JSON writes with a letter. */
const SIGNS = { n: '\n', t: '\t', r: '' };

/** The number of rows at the end of a reading, with notes on it that may name columns with brackets. */
const ROWS = /\s*\(\d[\d,]* rows?\b(?:[^()`]|`[^`]*`|\([^()]*\))*\)\s*$/;

/** Return a round as `{plan, items, answer}`; items are cells, orders and failures in order. */
export function viewOf(round) {
  const items = [];
  let answer = null;
  round.posts.forEach((post, at) => {
    const isCell = contents(post, 'reply_content').length > 0 || contents(post, 'verification').length > 0 || (at > 0 && isOrderedCell(round, at - 1));
    // The post after an order with a cell runs it, and is shown in its place.
    if (isCell && !isOrderedCell(round, at)) items.push(cellOf(round, at));
    else if (isCell) return;
    else if (contents(post, 'invalid_response').length) items.push({ kind: 'retry', id: post.id, text: last(post, 'revise_message') });
    else if (round.isAttempt && !post.isDone && !post.to && post.message) items.push({ kind: 'draft', id: `${post.id}-draft`, text: textsOf(post.message) });
    else if (isAnswer(post)) answer = answerOf(post);
    else if (isOrder(post)) items.push({ kind: 'order', id: post.id, from: post.from, to: post.to, text: withoutCode(post.message) });
    if (post.error) items.push({ kind: 'error', id: `${post.id}-error`, text: post.error });
  });
  markCorrections(items);
  const named = new Set(items.filter((item) => item.kind === 'cell').map((item) => item.intent));
  const isSaid = (item) => item.kind === 'order' && (named.has(firstLine(plainWords(item.text))) || /^Look at `[^`]+`$/.test(item.text.trim()));
  const shown = items.filter((item) => !isSaid(item));
  return { plan: planOf(round), items: shown, facts: factsOf(round), answer: answer?.isDone ? withResult(answer, shown) : answer };
}

/** Return a reply that is being written: of a JSON object its texts, and not its keys. */
function textsOf(reply) {
  if (!/^\s*(?:```\w*\s*)?\{/.test(reply)) return reply;
  // Each string is read to its end, whatever follows: a second try from within takes quadratic time.
  const texts = reply.matchAll(/([:[]\s*)?"([^"\\]*(?:\\.[^"\\]*)*)(?:"\s*([,\]}]?)|\\?$)/gs);
  const plain = (text) => text.replace(/\\(?:u([\da-f]{4})|(.))/gis, (_, code, sign) => (code ? String.fromCharCode(parseInt(code, 16)) : SIGNS[sign] ?? sign));
  return [...texts].filter(([, before, , after]) => before || after).map(([, , text]) => plain(text)).filter(Boolean).join('\n\n');
}

/** Lines on facts that were kept or forgotten; what follows a question names its answers. */
function factsOf(round) {
  const parts = round.posts.flatMap((post) => post.parts).filter((part) => part.type === 'function' && part.extra?.memory);
  return parts.map((part) => {
    const [text, ways] = String(part.content).split(/ \(yes or no; later: [^()]*\)$/);
    return { text, asks: ways !== undefined };
  });
}

/** Whether a post is an order with a cell that the next post has begun to carry out. */
function isOrderedCell(round, at) {
  const [order, next] = [round.posts[at], round.posts[at + 1]];
  return Boolean(next && isCellOrder(round, order) && next.from === order.to);
}

/** The leader, whose post is the first, orders cells; others report on them. */
function isCellOrder(round, post) {
  return post.from === round.posts[0].from && post.to && post.to !== 'User' && post.to !== post.from && contents(post, 'reply_content').length > 0 && !contents(post, 'execution_status').length;
}

function isAnswer(post) {
  return post.to === 'User' && post.message && post.from !== 'CodeInterpreter';
}

function isOrder(post) {
  return post.isDone && post.to && post.to !== 'User' && post.to !== post.from && withoutCode(post.message);
}

function withoutCode(text) {
  return text.replace(/```[\s\S]*?(?:```|$)/g, '').trim();
}

function answerOf(post) {
  const check = post.parts.filter((part) => part.type === 'answer_check').at(-1);
  const [first, ...rest] = post.message.split(/\n\s*\n/);
  // A first line with the number of rows is the reading of the question; the answer follows it.
  const isReading = rest.length > 0 && ROWS.test(first) && first.length < 400;
  return {
    id: post.id, whole: post.message, isDone: post.isDone,
    reading: isReading ? first : '',
    text: isReading ? rest.join('\n\n') : post.message,
    offers: questionsOf(post), result: null,
    unsupported: check?.extra?.unsupported_numbers ?? [],
    isFailure: last(post, 'stop') === 'TaskFailure',
  };
}

function questionsOf(post) {
  return post.parts.filter((part) => part.type === 'suggestions').at(-1)?.extra?.questions ?? [];
}

/** Take the one table of an answer, and the files of its cells, out of its text: they are its result. */
function withResult(answer, items) {
  const cells = items.filter((item) => item.kind === 'cell' && item.state === 'done');
  const figures = [...new Set(cells.flatMap((item) => item.figures))];
  const fence = /^```\n([\s\S]*?)\n```[ \t]*$/gm;
  const tables = [...answer.text.matchAll(fence)].map((match) => [match[0], readTable(match[1])]).filter(([, found]) => found);
  let text = withoutOffers(answer.text, answer.offers);
  let { reading } = answer;
  if (tables.length === 1) text = text.replace(tables[0][0], '');
  text = text.replace(/^Saved: (`[^`\n]+`(?:, )?)+$/gm, (line) => (figures.some((path) => line.includes(path)) ? '' : line));
  // How the file was read belongs to the reading of the question.
  for (const [line] of reading ? text.matchAll(/\n*^(?:From (?:`[^`\n]+`(?:, | and )?)+\.|(?:Dates|Numbers|Kept as text|Left out): .+)\s*$/gm) : []) {
    reading += `${/[.!?]$/.test(reading) ? '' : '.'} ${line.trim()}`;
    text = text.replace(line, '');
  }
  const table = tables.length === 1 ? tables[0][1] : tables.length ? null : readTable(cells.at(-1)?.sections.find((one) => one.name === 'Result')?.text ?? '');
  return { ...answer, text: text.trim(), reading, result: table || figures.length ? { table, figures, title: titleOf(answer.reading, table) } : null };
}

/** The reading of a question names its result, without the form of a chart and the number of rows. */
function titleOf(reading, table) {
  const text = reading.replace(ROWS, '').replaceAll('`', '').replace(/^(?:line|bar|pie) chart of /i, '');
  if (text) return text[0].toUpperCase() + text.slice(1);
  return table?.head.length === 2 && table.head[0] ? `${table.head[1]} per ${table.head[0]}` : 'Result';
}

/** Leave out the numbered list of an answer that its buttons stand for, and the line before it. */
function withoutOffers(text, offers) {
  const known = new Set(offers.map((one) => one.text.trim()));
  const lines = text.split('\n');
  const isOffer = (line) => known.has(line.replace(/^\s*\d+[.)]\s+/, '').replace(/ \([a-z ]+\)$/, '').trim());
  const first = lines.findIndex((line) => /^\s*\d+[.)]\s/.test(line) && isOffer(line));
  if (first < 0) return text;
  let from = first;
  while (from > 0 && !lines[from - 1].trim()) from -= 1;
  if (from > 0 && /:\s*$/.test(lines[from - 1])) from -= 1;
  return [...lines.slice(0, from), ...lines.slice(first).filter((line) => !isOffer(line))].join('\n');
}

function cellOf(round, at) {
  const post = round.posts[at];
  const order = at > 0 && isOrderedCell(round, at - 1) ? round.posts[at - 1] : null;
  const code = last(post, 'reply_content') || (order ? last(order, 'reply_content') : '');
  const status = last(post, 'execution_status');
  return {
    kind: 'cell', id: (order ?? post).id, code, language: last(post, 'reply_type') || 'python',
    intent: intentOf(round, at), lines: code ? code.split('\n').length : 0,
    state: cellState(round, post, status), runAt: post.runAt, seconds: post.runAt && post.endedAt ? (post.endedAt - post.runAt) / 1000 : null,
    output: post.output, sections: sectionsOf(last(post, 'execution_result')), error: round.isStopped ? '' : last(post, 'code_error'),
    refused: last(post, 'verification'), figures: contents(post, 'artifact_paths').flat().map(String),
    asks: post.asks, isDenied: /^The user did not allow/.test(post.message) || post.answered === 'denied', corrects: null,
  };
}

function cellState(round, post, status) {
  if (post.asks) return 'asks';
  if (status === 'SUCCESS') return 'done';
  if (round.isStopped && status !== 'SUCCESS') return 'stopped';
  if (status === 'FAILURE') return 'failed';
  if (status) return 'skipped';
  const isDenied = post.answered === 'denied' || /^The user did not allow/.test(post.message);
  if (isDenied || contents(post, 'verification').some((text) => !/^(?:CORRECT|NONE)/.test(text))) return 'skipped';
  return round.state === 'created' ? (post.runAt ? RUNNING : 'writing') : 'stopped';
}

function intentOf(round, at) {
  const own = last(round.posts[at], 'thought').trim();
  const profiled = /^profile_tables\('([^'\n]+)'/.exec(last(round.posts[at], 'reply_content'));
  if (profiled) return `Read ${profiled[1]}`;
  if (own) return firstLine(plainWords(own));
  if (isCellOrder(round, round.posts[at]) && at === round.posts.length - 1 && withoutCode(round.posts[at].message)) return firstLine(plainWords(withoutCode(round.posts[at].message)));
  const before = round.posts.slice(0, at).findLast((post) => post.from !== round.posts[at].from);
  const asked = before ? withoutCode(before.message) || last(before, 'current_plan_step') : '';
  return firstLine(plainWords(asked)) || 'Code';
}

function plainWords(text) {
  return text.replace(/^\d+\.\s*/, '').replace(/`/g, '');
}

/** Parts of an outcome by their headings: `Result`, `Output`, `Error` and so on. */
function sectionsOf(text) {
  const found = [];
  for (const part of text.split(/^### /m).slice(1)) {
    const [name, ...body] = part.split('\n');
    const content = body.join('\n').trim();
    const fence = /^(`{3,})[^\n]*\n([\s\S]*?)\n?\1\s*$/.exec(content);
    found.push({ name: name.trim(), text: fence ? fence[2] : content });
  }
  return found;
}

/** A cell that follows a failed one corrects it: its difference is shown. */
function markCorrections(items) {
  const cells = items.filter((item) => item.kind === 'cell');
  cells.forEach((cell, at) => {
    const before = cells[at - 1];
    if (before && ['failed', 'skipped'].includes(before.state) && before.code && cell.code) cell.corrects = before.code;
  });
}

/** The newest plan with the state of its steps; steps that an earlier plan had are struck. */
function planOf(round) {
  const plans = round.posts.flatMap((post) => contents(post, 'plan')).filter((text) => String(text).trim());
  if (!plans.length) return [];
  const steps = round.isAttempt ? [plans.at(-1)] : stepsOf(plans.at(-1));
  const current = round.posts.map((post) => last(post, 'current_plan_step')).filter(Boolean).at(-1) ?? '';
  const at = steps.findIndex((step) => sameStep(step, current));
  const isOver = round.state !== 'created';
  const isComplete = round.state === 'finished' && !round.posts.some((post) => last(post, 'stop') === 'TaskFailure');
  const known = new Set(steps.map(plainStep));
  const dropped = plans.slice(0, -1).flatMap(stepsOf).filter((step) => !known.has(plainStep(step)));
  return [
    ...[...new Set(dropped)].map((text) => ({ text, state: 'dropped' })),
    ...steps.map((text, index) => ({ text: plainStep(text), state: stepState(index, at, isOver, isComplete) })),
  ];
}

function stepState(index, at, isOver, isComplete) {
  if (isComplete || (at >= 0 && index < at)) return 'done';
  if (index === at) return isOver ? 'failed' : RUNNING;
  return 'open';
}

function stepsOf(plan) {
  return String(plan).split('\n').map((line) => line.trim()).filter((line) => /^\d+[.)]/.test(line));
}

function plainStep(step) {
  return step.replace(/^\d+[.)]\s*/, '').replace(/\s*<[^>]*depend[^>]*>\s*$/i, '');
}

function sameStep(step, current) {
  return plainStep(step) === plainStep(current.trim()) || step.split(/[.)]/)[0] === current.trim().split(/[.)]/)[0];
}
