import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseXml, childText } from './s3-xml.ts';

const keyOf = (text: string): string | undefined =>
  childText(parseXml(`<Object><Key>${text}</Key></Object>`), 'Key');

test('an entity is one that XML has, or the document is none', () => {
  assert.equal(keyOf('a &amp; b &lt;&gt;&quot;&apos; &#65;&#x42;'), 'a & b <>"\' AB');
  for (const text of ['&constructor;', '&toString;', '&__proto__;', '&nbsp;', '&', '&#x110000;'])
    assert.equal(keyOf(text), undefined, text);
});
