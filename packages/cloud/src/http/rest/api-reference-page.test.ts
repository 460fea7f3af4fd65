import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openApiDocument } from './openapi.ts';
import { operation } from './rest-operation.ts';
import { sampleApi } from './sample-api.fixture.ts';
import { referencePage } from './api-reference-page.ts';
import * as schema from './json-schema.ts';

const page = referencePage(openApiDocument(sampleApi));
const article = (id: string): string =>
  page.split('<article').find((part) => part.includes(`id="${id}"`)) ?? '';

describe('the reference page', () => {
  test('is whole: tags close, ids are unique and each link has its target', () => {
    assert.deepEqual(faults(page), []);
    assert.match(page, /^<!doctype html>/);
  });

  test('stands alone: no script, and nothing from elsewhere', () => {
    assert.doesNotMatch(page, /<script|<link|<img|<iframe|\bsrc=|@import|url\(|href="[^#]/i);
  });

  test('lists operations by tag, each with what it takes and gives', () => {
    assert.ok(
      page.indexOf('id="tag-weather"') < page.indexOf('id="operation-tide"') &&
        page.indexOf('id="operation-tide"') < page.indexOf('id="tag-ships"'),
    );
    const list = article('operation-listShips');
    for (const part of [
      'GET',
      '/v9/ships',
      'List ships',
      'needs a key that may read',
      'The year of arrival.',
      'at least 1900',
      'parted by commas',
      'default <code>10</code>',
      'list of <a href="#schema-Ship">Ship</a>',
      '<code>429</code>',
    ])
      assert.ok(list.includes(part), part);
    assert.match(article('operation-removeShip'), /needs the operator’s key/);
    assert.match(article('operation-tide'), /needs no key/);
  });

  test('shows the fields of a body with those of its parts below them', () => {
    const create = article('operation-createShip');
    assert.match(
      create,
      /<td class="level-0"><code>name<\/code> <span class="required">required<\/span><\/td><td>string<\/td><td><div>As painted on the bow\.<\/div><div class="limits">1 to 191 characters<\/div>/,
    );
    assert.match(
      create,
      /<td class="level-0"><code>berth<\/code><\/td><td><a href="#schema-Berth">Berth<\/a>.*<td class="level-1"><code>depth<\/code>/,
    );
    assert.match(
      create,
      /<code>crew<\/code><\/td><td>list of object<\/td>.*<td class="level-1"><code>rank<\/code><\/td><td>string<\/td><td><div class="limits">one of <code>CAPTAIN<\/code> <code>MATE<\/code>; default <code>MATE<\/code>/,
    );
    assert.match(create, /<code>flags<\/code><\/td><td>map to string<\/td>/);
    assert.match(create, /at least 1 field/);
    assert.match(
      article('schema-Ship'),
      /<a href="#schema-Berth">Berth<\/a> or null<\/td>(?!.*level-1"><code>depth)/,
    );
    assert.match(article('schema-Ship'), /date-time or null/);
  });

  test('shows alternatives one after the other', () => {
    const body: schema.Schema = {
      oneOf: [schema.object({ gpu: schema.text() }), schema.object({ cpu: schema.text() })],
    };
    const put = operation({
      id: 'put',
      method: 'PUT',
      path: '/x',
      tag: 'X',
      summary: 'X',
      access: 'write',
      body,
      status: 200,
      handle: () => Promise.resolve(),
    });
    assert.match(
      referencePage(openApiDocument({ ...sampleApi, operations: [put] })),
      /form 1 of 2.*<code>gpu<\/code>.*form 2 of 2.*<code>cpu<\/code>/,
    );
  });

  test('escapes everything that it is given', () => {
    const bad = `"'><script>alert(1)</script><b x="&`;
    const fields = {
      [bad]: schema.stringEnum([bad], { description: `${bad} \`${bad}\``, default: bad, examples: [bad] }),
      [`${bad}2`]: schema.text({ pattern: bad, format: bad }),
    };
    const hostile = operation({
      id: bad,
      method: 'POST',
      path: `/${bad}/{${bad}}`,
      tag: bad,
      summary: bad,
      description: `${bad}\n\n${bad}`,
      access: 'write',
      status: 200,
      failures: [404],
      handle: () => Promise.resolve({}),
      query: schema.object({}, fields),
      body: schema.named(bad, schema.object({}, fields, { description: bad })),
      answer: schema.map(schema.object({}, fields)),
    });
    const made = referencePage(
      openApiDocument({
        ...sampleApi,
        title: bad,
        version: bad,
        description: bad,
        prefix: bad,
        serverUrl: bad,
        operations: [hostile],
        errorMediaType: bad,
        securityDescription: bad,
        tags: [{ name: bad, description: bad }],
        responseHeaders: { [bad]: { description: bad, schema: schema.text() } },
      }),
    );
    assert.deepEqual(faults(made), []);
    assert.doesNotMatch(made, /<script|<b /);
    assert.match(made, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/);
  });

  test('ends even where a schema contains itself', () => {
    const document = openApiDocument(sampleApi);
    document.components.schemas['Ship'] = {
      type: 'object',
      properties: {
        tug: { $ref: '#/components/schemas/Ship' },
        tugs: { type: 'array', items: { $ref: '#/components/schemas/Ship' } },
      },
    };
    document.paths['/v9/ships']!['post']!.requestBody!.content['application/json']!.schema = {
      $ref: '#/components/schemas/Ship',
    };
    assert.deepEqual(faults(referencePage(document)), []);
  });
});

/** What is broken in a page: tags that do not close in order, ids used twice, links to nowhere. */
function faults(markup: string): string[] {
  const found: string[] = [];
  const open: string[] = [];
  const body = markup.replace(/<style>[^]*<\/style>/, '');
  for (const [, end, name] of body.matchAll(/<(\/?)([a-z][a-z0-9]*)(?:\s+[a-z-]+="[^"<>]*")*\s*>/g)) {
    if (name === 'meta') continue;
    if (end === '') open.push(name!);
    else if (open.pop() !== name) found.push(`</${name}> closes something else`);
  }
  const tags = body.match(/<(?!!)/g)?.length;
  const wellFormed = body.match(/<\/?[a-z][a-z0-9]*(?:\s+[a-z-]+="[^"<>]*")*\s*>/g)?.length;
  if (tags !== wellFormed) found.push('a tag is not well formed');
  if (open.length > 0) found.push(`left open: ${open.join(' ')}`);
  const ids = [...body.matchAll(/ id="([^"]*)"/g)].map((match) => match[1]!);
  if (new Set(ids).size !== ids.length) found.push('an id is used twice');
  for (const [, target] of body.matchAll(/href="#([^"]*)"/g))
    if (!ids.includes(target!)) found.push(`no target for #${target}`);
  return found;
}
