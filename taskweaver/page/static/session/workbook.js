/** A table as a workbook of Excel: a ZIP archive of five XML files, not compressed. */

import { isMissing } from '../text/plain_table.js';

const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const TYPES = 'application/vnd.openxmlformats-officedocument.spreadsheetml';
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const FONT = '<sz val="11"/><name val="Calibri"/>';
const PLAIN = 'numFmtId="0" fontId="0" fillId="0" borderId="0"';
const MOST_CHARS = 32_767;
const DAY_MS = 86_400_000;
const [BOLD, DAY] = [1, 2];

/** Return the bytes of a workbook with a table: numbers and days as such, all else as text. */
export function workbook({ head, rows }) {
  const lines = [head.map((name) => textCell(name, BOLD)), ...rows.map((row) => row.map(cell))];
  const relation = (kind, target, id) => `<Relationship Id="r${id}" Type="${RELATIONS}/${kind}" Target="${target}"/>`;
  return archive({
    '[Content_Types].xml': `${HEAD}<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="${TYPES}.sheet.main+xml"/><Override PartName="/xl/sheet.xml" ContentType="${TYPES}.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="${TYPES}.styles+xml"/></Types>`,
    '_rels/.rels': `${HEAD}<Relationships xmlns="${PACKAGE}/relationships">${relation('officeDocument', 'xl/workbook.xml', 1)}</Relationships>`,
    'xl/workbook.xml': `${HEAD}<workbook xmlns="${MAIN}" xmlns:r="${RELATIONS}"><sheets><sheet name="Result" sheetId="1" r:id="r1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `${HEAD}<Relationships xmlns="${PACKAGE}/relationships">${relation('worksheet', 'sheet.xml', 1)}${relation('styles', 'styles.xml', 2)}</Relationships>`,
    'xl/styles.xml': `${HEAD}<styleSheet xmlns="${MAIN}"><fonts count="2"><font>${FONT}</font><font><b/>${FONT}</font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf ${PLAIN}/></cellStyleXfs><cellXfs count="3"><xf ${PLAIN} xfId="0"/><xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/><xf numFmtId="14" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`,
    'xl/sheet.xml': `${HEAD}<worksheet xmlns="${MAIN}"><sheetData>${lines.map((cells) => `<row>${cells.join('')}</row>`).join('')}</sheetData></worksheet>`,
  });
}

/** Numerals that are names, such as 00123, and long ones, which Excel would round, stay texts. */
function cell(text) {
  if (isMissing(text)) return '<c/>';
  const isNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text) && text.replace(/e.*|\D/gi, '').length <= 15;
  if (isNumber) return `<c><v>${text}</v></c>`;
  const day = /^(19|2\d)\d\d-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  const serial = (day - Date.UTC(1899, 11, 30)) / DAY_MS; // right from March 1900 on
  return serial > 60 ? `<c s="${DAY}"><v>${serial}</v></c>` : textCell(text, 0);
}

function textCell(text, style) {
  // eslint-disable-next-line no-control-regex
  const plain = text.slice(0, MOST_CHARS).replace(/[\0-\x08\v\f\x0e-\x1f\ufffe\uffff]/g, '').toWellFormed();
  const escaped = plain.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<c s="${style}" t="inlineStr"><is><t xml:space="preserve">${escaped}</t></is></c>`;
}

/** Return a ZIP archive of texts by their paths. */
function archive(files) {
  const [parts, index] = [[], []];
  let offset = 0;
  for (const [path, text] of Object.entries(files)) {
    const [name, content] = [path, text].map((one) => new TextEncoder().encode(one));
    // Version, flags (names in UTF-8), method, time, day, checksum, both sizes, lengths of names.
    const facts = numbers([20, 2], [0x800, 2], [0, 2], [0, 2], [0x21, 2], [checksum(content), 4], [content.length, 4], [content.length, 4], [name.length, 2], [0, 2]);
    parts.push(numbers([0x04034b50, 4]), facts, name, content);
    index.push(numbers([0x02014b50, 4], [20, 2]), facts, numbers([0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]), name);
    offset += 4 + facts.length + name.length + content.length;
  }
  const size = index.reduce((all, one) => all + one.length, 0);
  const number = Object.keys(files).length;
  const end = numbers([0x06054b50, 4], [0, 2], [0, 2], [number, 2], [number, 2], [size, 4], [offset, 4], [0, 2]);
  const all = [...parts, ...index, end];
  const bytes = new Uint8Array(offset + size + end.length);
  let at = 0;
  for (const part of all) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Return numbers as bytes, the lowest first: `[number, bytes]`. */
function numbers(...pairs) {
  return Uint8Array.from(pairs.flatMap(([number, length]) => Array.from({ length }, (_, at) => (number >>> (8 * at)) & 255)));
}

/** Return the CRC-32 of bytes. */
function checksum(bytes) {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
