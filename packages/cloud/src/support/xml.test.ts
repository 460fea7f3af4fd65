import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { childText, parseXml } from './xml-parser.ts';
import { element, xmlDocument } from './xml-writer.ts';

const keyOf = (text: string): string | undefined =>
  childText(parseXml(`<Object><Key>${text}</Key></Object>`), 'Key');

describe('XML', () => {
  test('accepts the entities of XML itself and no others', () => {
    assert.equal(keyOf('a &amp; b &lt;&gt;&quot;&apos; &#65;&#x42;'), 'a & b <>"\' AB');
    for (const text of ['&constructor;', '&toString;', '&__proto__;', '&nbsp;', '&', '&#x110000;'])
      assert.equal(keyOf(text), undefined, text);
  });

  test('reads elements, text and CDATA, and skips the rest', () => {
    assert.deepEqual(
      parseXml(
        '\ufeff<?xml version="1.0"?><!-- a --><s3:Delete xmlns:s3="urn:x" a="1"> ' +
          '<Object><Key>a<![CDATA[<&>]]>b</Key><None/></Object></s3:Delete>\n',
      ),
      {
        name: 'Delete',
        text: ' ',
        children: [
          {
            name: 'Object',
            text: '',
            children: [
              { name: 'Key', text: 'a<&>b', children: [] },
              { name: 'None', text: '', children: [] },
            ],
          },
        ],
      },
    );
  });

  test('refuses what is not one well-formed element', () => {
    for (const document of [
      '',
      'text',
      '<a>',
      '<a></b>',
      '<a/><b/>',
      '<a/>text',
      'text<a/>',
      '<a b=c/>',
      '<a>]]></a>',
      '<a>\u0001</a>',
    ])
      assert.equal(parseXml(document), undefined, document);
  });

  test('refuses document types: no entity is declared, loaded or expanded', () => {
    const bomb =
      '<!DOCTYPE a [<!ENTITY x0 ' +
      `"x">${Array.from({ length: 20 }, (_, n) => `<!ENTITY x${n + 1} "&x${n};&x${n};">`).join('')}]>`;
    for (const document of [
      '<!DOCTYPE a><a/>',
      '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
      '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
      '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
      `${bomb}<a>&x20;</a>`,
    ])
      assert.equal(parseXml(document), undefined, document);
  });

  test('refuses deep nesting, however deep it is', () => {
    const nested = (depth: number): string => '<a>'.repeat(depth) + '</a>'.repeat(depth);
    assert.notEqual(parseXml(nested(31)), undefined);
    for (const depth of [32, 1_000, 100_000, 1_000_000]) assert.equal(parseXml(nested(depth)), undefined);
  });

  test('refuses more tags than it can parse without holding up the server', () => {
    const many = (count: number): string => `<a>${'<b/>'.repeat(count)}</a>`;
    assert.equal(parseXml(many(249_998))?.children.length, 249_998);
    assert.equal(parseXml(many(1_000_000)), undefined);
  });

  test('serialized documents are parsed back', async () => {
    await checkProperty(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const document = xmlDocument('Root', [element('Key', text), undefined], 'urn:x');
        assert.equal(
          childText(parseXml(document), 'Key'),
          text.replaceAll(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, ''),
        );
      }),
    );
    assert.equal(childText(parseXml(xmlDocument('R', element('K', '\ud800x'))), 'K'), '\ufffdx');
  });
});
