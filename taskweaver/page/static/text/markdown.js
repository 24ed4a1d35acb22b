/**
 * Markdown as elements. The lexer makes tokens; each kind that is allowed becomes an element with
 * text in it. HTML in it is shown as text, pictures become links, so nothing runs or is loaded.
 */

import { h, memo } from '../core/dom.js';
import { seen } from '../core/words.js';
import { Lexer } from '../vendor/marked-18.2.1/marked.esm.js';
import { codeBlock } from './highlight.js';
import { readTable } from './plain_table.js';
import { table } from './table.js';

const BLOCK_CHARS = 32_768;
const OPTIONS = { gfm: true, breaks: false, pedantic: false };
const LINK = /^(?:https?|mailto):/i;
const ENTITIES = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };

/** Return Markdown as blocks, each of which stays as it is while only the last one grows. */
export function markdown(text, marks = null) {
  return blocksOf(String(text ?? '')).map((block, at) =>
    memo(`block-${at}`, [block, marks], () => h('div', { class: 'block' }, tokens(lexed(block), marks))));
}

/** Split a text at blank lines outside of fences, into blocks that are lexed alone. */
function blocksOf(text) {
  const blocks = [];
  let block = '';
  let fence = '';
  for (const line of text.split(/(?<=\n)/)) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark) fence = fence ? (mark.startsWith(fence) ? '' : fence) : mark;
    block += line;
    const isEnd = !fence && !line.trim() && !/^(?: |\t|[-*+] |\d+[.)] )/.test(block.trimStart() && block);
    if (block.trim() && (isEnd || block.length > BLOCK_CHARS)) {
      blocks.push(block);
      block = '';
    }
  }
  if (block.trim()) blocks.push(block);
  return blocks;
}

function lexed(block) {
  try {
    return new Lexer({ ...OPTIONS }).lex(block);
  } catch {
    return [{ type: 'text', text: block }];
  }
}

function tokens(list, marks) {
  return (list ?? []).map((token) => (BUILDERS[token.type] ?? asText)(token, marks));
}

function asText(token, marks) {
  return marked(seen(plain(token.raw ?? token.text ?? '')), marks);
}

function plain(text) {
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]);
}

/** Underline the numbers of an answer that stand in no outcome. */
function marked(text, marks) {
  if (!marks?.length) return text;
  const escaped = marks.map((mark) => mark.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return text.split(new RegExp(`(?<![\\w.])(${escaped.join('|')})(?![\\w])`)).map((part, at) =>
    at % 2 ? h('span', { class: 'unsupported', title: 'This number stands in no outcome of the session.' }, part) : part);
}

function inline(tag) {
  return (token, marks) => h(tag, {}, tokens(token.tokens, marks));
}

function text(token, marks) {
  return token.tokens ? tokens(token.tokens, marks) : marked(seen(plain(token.text)), marks);
}

function link(token, marks) {
  const label = token.tokens?.length ? tokens(token.tokens, marks) : seen(token.text);
  if (!LINK.test(token.href)) return h('span', { class: 'no-link', title: token.href }, label);
  return h('a', { href: token.href, title: seen(token.href), target: '_blank', rel: 'noopener noreferrer' }, label);
}

function list(token, marks) {
  const items = token.items.map((item) => h('li', {},
    item.task ? h('input', { type: 'checkbox', disabled: true, checked: Boolean(item.checked), 'aria-label': 'done' }) : null,
    tokens(item.tokens.filter((one) => one.type !== 'checkbox'), marks)));
  return h(token.ordered ? 'ol' : 'ul', token.ordered && token.start !== 1 ? { start: token.start } : {}, items);
}

function code(token) {
  const found = token.lang ? null : readTable(token.text);
  return found ? table(found) : codeBlock(token.text, (token.lang ?? '').trim().toLowerCase());
}

function markdownTable(token, marks) {
  const cell = (tag) => (one, at) => h(tag, { class: token.align[at] ?? '' }, tokens(one.tokens, marks));
  return h('div', { class: 'table-box', tabindex: 0, role: 'group', 'aria-label': 'Table' }, h('table', {},
    h('thead', {}, h('tr', {}, token.header.map(cell('th')))),
    h('tbody', {}, token.rows.map((row) => h('tr', {}, row.map(cell('td')))))));
}

const BUILDERS = {
  space: () => null,
  def: () => null,
  hr: () => h('hr', {}),
  br: () => h('br', {}),
  // The page has headings of its own; those of an answer come below them.
  heading: (token, marks) => h(`h${Math.min(6, token.depth + 3)}`, {}, tokens(token.tokens, marks)),
  paragraph: inline('p'),
  blockquote: inline('blockquote'),
  strong: inline('strong'),
  em: inline('em'),
  del: inline('del'),
  codespan: (token, marks) => h('code', {}, marked(seen(plain(token.text)), marks)),
  text,
  escape: text,
  link,
  image: (token) => link({ href: token.href, text: token.text || token.href }),
  list,
  code,
  table: markdownTable,
};
