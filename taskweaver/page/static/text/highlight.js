/** Code as coloured spans: one regular expression for each language, no HTML. */

import { h } from '../core/dom.js';
import { seen } from '../core/words.js';

const MOST_LINES = 10_000;
const NUMBER = String.raw`\b(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?)\b`;
const QUOTED = String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?`;

const PYTHON_WORDS = 'and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield None True False';
const SQL_WORDS = 'select from where group by order having join left right inner outer on as and or not in is null like limit offset union all distinct insert into values update set delete create table drop with case when then else end asc desc between exists';
const SHELL_WORDS = 'if then else elif fi for in do done while case esac function return export local echo cd';

const words = (text, flags = '') => new RegExp(`^(?:${text.split(' ').join('|')})$`, flags);

const LANGUAGES = {
  python: { rule: rule({ comment: '#[^\\n]*', text: `[rbfuRBFU]{0,2}(?:"""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)|${QUOTED})`, mark: '@[\\w.]+', number: NUMBER, word: '[A-Za-z_]\\w*' }), words: words(PYTHON_WORDS) },
  json: { rule: rule({ text: '"(?:\\\\.|[^"\\\\\\n])*"?', number: `-?${NUMBER}`, word: '[a-z]+' }), words: words('true false null') },
  sql: { rule: rule({ comment: '--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)', text: "'(?:''|[^'])*'?", number: NUMBER, word: '[A-Za-z_]\\w*' }), words: words(SQL_WORDS, 'i') },
  shell: { rule: rule({ comment: '(?<=^|\\s)#[^\\n]*', text: QUOTED, mark: '\\$\\{?\\w+\\}?', number: NUMBER, word: '[A-Za-z_][\\w-]*' }), words: words(SHELL_WORDS) },
};
const ALIASES = { py: 'python', python3: 'python', ipython: 'python', bash: 'shell', sh: 'shell', zsh: 'shell', console: 'shell' };

function rule(parts) {
  return new RegExp(Object.entries(parts).map(([name, source]) => `(?<${name}>${source})`).join('|'), 'gm');
}

/** Return code as a list of spans and texts, in a language that is known, else as it is. */
function highlighted(code, language = '') {
  const name = ALIASES[language] ?? language;
  if (name === 'diff') return diffLines(code);
  const known = LANGUAGES[name];
  const text = seen(code);
  if (!known || text.split('\n', MOST_LINES + 1).length > MOST_LINES) return [text];
  const out = [];
  let at = 0;
  for (const match of text.matchAll(known.rule)) {
    const kind = kindOf(match.groups, known.words);
    if (!kind || !match[0]) continue;
    if (match.index > at) out.push(text.slice(at, match.index));
    out.push(h('span', { class: `hl-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  out.push(text.slice(at));
  return out;
}

function kindOf(groups, keywords) {
  const [kind, text] = Object.entries(groups).find(([, value]) => value !== undefined);
  if (kind !== 'word') return kind;
  return keywords.test(text) ? 'keyword' : '';
}

/** Return a unified diff with added and removed lines marked. */
export function diffLines(text) {
  return seen(text).split('\n').map((line) => {
    const kind = { '+': 'added', '-': 'removed', '@': 'place' }[line[0]] ?? 'same';
    return h('span', { class: `diff-${kind}` }, `${line}\n`);
  });
}

/** Return a block of code. */
export function codeBlock(code, language = '', name = 'Code') {
  return h('pre', { class: 'code', tabindex: 0, role: 'group', 'aria-label': name }, h('code', {}, highlighted(code, language)));
}
