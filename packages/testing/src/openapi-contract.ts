import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import type * as AjvModule from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import type { OpenApiDocument, OperationObject, ResponseObject } from '../../cloud/src/http/rest/openapi.ts';
import type { ApiResponse, ApiClient } from './api-client.ts';

const { Ajv2020 } = createRequire(new URL('../../cloud/package.json', import.meta.url))(
  'ajv/dist/2020.js',
) as typeof AjvModule;

/** What a server publishes about its two REST interfaces, and whether an answer is as it says. */
export interface OpenApiContract {
  v1: OpenApiDocument;
  v2: OpenApiDocument;
  /** Fails where an answer is not one that the documents promise. */
  check(method: string, path: string, answer: ApiResponse): void;
}

/** By what was published: every server of a file publishes the same, and to compile a schema takes long. */
const contracts = new Map<string, OpenApiContract>();

export async function loadOpenApiContract(client: ApiClient): Promise<OpenApiContract> {
  const [v1, v2] = await Promise.all([
    client.call<OpenApiDocument>('GET', '/v1/openapi.json'),
    client.call<OpenApiDocument>('GET', '/v2/openapi.json'),
  ]);
  assert.ok(v1.body?.openapi !== undefined && v2.body?.openapi !== undefined);
  const published = v1.text + v2.text;
  const contract = contracts.get(published) ?? createContract(v1.body, v2.body);
  contracts.set(published, contract);
  return contract;
}

function createContract(v1: OpenApiDocument, v2: OpenApiDocument): OpenApiContract {
  const ajv = new Ajv2020({
    strict: false,
    meta: false,
    validateSchema: false,
    allErrors: true,
    formats: { 'date-time': (text: string) => !Number.isNaN(Date.parse(text)) },
  });
  ajv.addSchema({ $id: 'v1', ...v1 }).addSchema({ $id: 'v2', ...v2 });
  const validators = new Map<string, ValidateFunction>();

  const check: OpenApiContract['check'] = (method, path, answer) => {
    const name = path.startsWith('/v1/') ? 'v1' : 'v2';
    const document = name === 'v1' ? v1 : v2;
    const where = `${method} ${path} answered ${answer.status} ${answer.text.slice(0, 300)}`;
    const pattern = patternOf(
      document,
      (path.split('?')[0] ?? '').slice(name === 'v1' ? '/v1'.length : 0),
      method,
    );
    const documented = pattern === undefined ? undefined : document.paths[pattern]?.[method.toLowerCase()];
    if (pattern === undefined || documented === undefined)
      return assert.ok(answer.status === 404 || answer.status === 405, `${where}, and no document knows it`);
    const { pointer, response } = responseOf(document, pattern, method, documented, answer.status, where);
    const [mediaType] = Object.keys(response.content ?? {});
    if (mediaType === undefined) {
      assert.equal(answer.text, '', where);
      return assert.equal(answer.headers.get('content-type'), null, where);
    }
    // Bytes have no character set.
    if (mediaType === 'application/x-tar' || mediaType === 'application/octet-stream')
      return assert.equal(answer.headers.get('content-type'), mediaType, where);
    assert.equal(answer.headers.get('content-type'), `${mediaType}; charset=utf-8`, where);
    if (mediaType.startsWith('text/')) return;
    const reference = `${name}#${pointer}/content/${mediaType.replaceAll('/', '~1')}/schema`;
    const validate = validators.get(reference) ?? ajv.compile({ $ref: reference });
    validators.set(reference, validate);
    assert.ok(validate(answer.body), `${where}: ${ajv.errorsText(validate.errors)}`);
  };
  return { v1, v2, check };
}

/** A client that checks every answer of the REST interfaces against what is published. */
export function validatingClient(client: ApiClient, contract: OpenApiContract): ApiClient {
  return {
    ...client,
    call: async (method, path, body, headers) => {
      const answer = await client.call(method, path, body, headers);
      if (/^\/v[12]\//.test(path)) contract.check(method, path, answer);
      return answer as never;
    },
  };
}

/** The most exact of the documented paths that fits and has the method. */
function patternOf(document: OpenApiDocument, path: string, method: string): string | undefined {
  const parts = path.split('/');
  const fits = Object.keys(document.paths).filter((pattern) => {
    const wanted = pattern.split('/');
    return (
      wanted.length === parts.length &&
      wanted.every((part, index) => part.startsWith('{') || part === parts[index])
    );
  });
  const exactness = (pattern: string): number => pattern.split('{').length;
  return fits
    .filter((pattern) => document.paths[pattern]?.[method.toLowerCase()] !== undefined)
    .sort((a, b) => exactness(a) - exactness(b))[0];
}

function responseOf(
  document: OpenApiDocument,
  pattern: string,
  method: string,
  documented: OperationObject,
  status: number,
  where: string,
): { pointer: string; response: ResponseObject } {
  const found = documented.responses[status];
  assert.ok(
    found !== undefined,
    `${where}, which is documented for ${Object.keys(documented.responses).join(', ')} only`,
  );
  if (!('$ref' in found))
    return {
      pointer: `/paths/${pattern.replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${status}`,
      response: found,
    };
  const response = document.components.responses[found.$ref.replace('#/components/responses/', '')];
  assert.ok(response !== undefined, found.$ref);
  return { pointer: found.$ref.slice(1), response };
}
