import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedPaths } from '../../api/changed-paths.ts';
import { eventData } from '../../api/sse.ts';
import { jsonProblem, prettyJson } from '../../components/json-text.ts';
import { callUrl, contentTypeOf, httpSnippet, sentBody } from './http-call.ts';
import { readJobSearch, searchFilter, searchQuery } from './job-search.ts';
import { readErrorDetail } from './error-detail.ts';
import { snippet } from './snippets.ts';
import { phasesOf } from './start-phases.ts';

test('the address of the page becomes the query of the search', () => {
  const search = readJobSearch({
    status: 'FAILED',
    id: 12,
    text: 'x',
    from: '2026-01-02T03:04:05Z',
    other: 1,
    job: 'j',
  });
  assert.deepEqual(searchQuery(search), {
    status: 'FAILED',
    idPrefix: '12',
    text: 'x',
    from: '2026-01-02T03:04:05.000Z',
  });
  assert.deepEqual(searchFilter({ status: 'FAILED,TIMED_OUT' }), { status: ['FAILED', 'TIMED_OUT'] });
  assert.deepEqual(searchQuery(readJobSearch({ from: 'nonsense' })), {});
});

test('an event says which addresses are out of date', () => {
  assert.deepEqual(changedPaths({ type: 'job.changed', endpointId: 'e' }), [
    '/v2/serverless/e/jobs',
    '/v2/e',
    '/v2/account/overview',
  ]);
  assert.deepEqual(changedPaths({ type: 'ready' }), []);
});

test('the phases of a start follow each other; one under way has no time yet', () => {
  assert.deepEqual(
    phasesOf({
      scheduledAt: '2026-01-01T00:00:00.000Z',
      imageReadyAt: '2026-01-01T00:00:02.000Z',
      startedAt: '2026-01-01T00:00:02.500Z',
      connectedAt: null,
    }).map(({ took }) => took),
    [2000, 500, undefined],
  );
  assert.deepEqual(phasesOf(null), []);
});

test('programs carry the request, and never a key', () => {
  const call = { origin: 'http://b', endpointId: 'e', body: '{"input": {"text": "it\'s"}}' } as const;
  assert.match(snippet('curl', { ...call, mode: 'runsync' }), /b\/v2\/e\/runsync[^]*it'\\''s/);
  assert.match(
    snippet('python', { ...call, mode: 'stream' }),
    /endpoint_url_base = "http:\/\/b\/v2"[^]*\.stream\(\)/,
  );
  assert.match(snippet('typescript', { ...call, mode: 'chat' }), /openai\/v1/);
});

test('wrong JSON is told with its place, and large values are cut', () => {
  assert.equal(jsonProblem('{"a": 1}'), undefined);
  assert.match(jsonProblem('{\n  "a": 1\n  "b": 2}') ?? '', /^line 3, column 3/);
  assert.ok(prettyJson('x'.repeat(10_000_000)).length < 250_000);
});

test('the data of an event may have several lines; a comment has none', () => {
  assert.equal(eventData('id: 1\ndata: a\ndata: b'), 'a\nb');
  assert.equal(eventData(': waiting'), undefined);
});

test('the traceback of an error is shown as lines', () => {
  assert.deepEqual(readErrorDetail('{"error_type":"E","error_traceback":"a\\nb"}'), {
    traceback: 'a\nb',
    rest: { error_type: 'E' },
  });
  assert.deepEqual(readErrorDetail('plain'), { rest: 'plain' });
});

test('a path of a load balancing endpoint stays below it', () => {
  const base = 'http://b/v2/e';
  const url = (path: string) => callUrl({ base, path });
  assert.deepEqual(
    ['', '/', 'echo?a=b c', '//other.host/x', 'a/../b'].map(url),
    ['', '', 'echo?a=b%20c', 'other.host/x', 'b'].map((path) => `${base}/${path}`),
  );
  assert.deepEqual(['..', '../e2/x', '/%2e%2e/jobs'].map(url), [undefined, undefined, undefined]);
});

test('an HTTP request is the same in every language, with its body where it has one', () => {
  const call = { base: 'http://b/v2/e', method: 'POST', path: '/echo', body: '{"text": "it\'s"}' } as const;
  assert.match(
    httpSnippet('curl', call),
    /^curl -s -X POST 'http:\/\/b\/v2\/e\/echo' \\\n[^]*application\/json' \\\n {2}--data-binary '.*it'\\''s"}'$/,
  );
  assert.match(httpSnippet('python', call), /request\("POST", "http:\/\/b\/v2\/e\/echo", [^]*data=body\)/);
  assert.match(httpSnippet('typescript', call), /method: 'POST'[^]*body: "{\\"text/);
  const read = { ...call, method: 'GET' } as const;
  assert.equal(sentBody(read), undefined);
  for (const language of ['curl', 'python', 'typescript'] as const) {
    assert.doesNotMatch(httpSnippet(language, read), /Content-Type|it's/);
    assert.match(httpSnippet(language, { ...call, body: 'x'.repeat(10_001) }), /request\.body/);
  }
  assert.equal(contentTypeOf('plain words'), 'text/plain; charset=utf-8');
});
