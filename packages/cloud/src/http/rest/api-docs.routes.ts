import type { OpenApiDocument } from './openapi.ts';
import type { Operation } from './rest-operation.ts';
import { operation } from './rest-operation.ts';
import { anyValue, object } from './json-schema.ts';
import { apiReferencePage, apiReferenceScript, PAGE_HEADERS, SCRIPT_HEADERS } from './api-reference-page.ts';

/**
 * Where an interface describes itself: the document for tools, the page for people. Both need no key, and are
 * made on first use.
 */
export function apiDocsOperations(title: string, describe: () => Promise<OpenApiDocument>): Operation[] {
  const tag = 'About';
  let document: Promise<OpenApiDocument> | undefined;
  return [
    operation({
      id: 'getOpenApi',
      method: 'GET',
      path: '/openapi.json',
      tag,
      summary: 'The OpenAPI document',
      access: 'open',
      status: 200,
      response: { type: 'object', ...anyValue({ description: 'An OpenAPI 3.1 document' }) },
      handle: () => (document ??= describe()),
    }),
    operation({
      id: 'getDocs',
      method: 'GET',
      path: '/docs',
      tag,
      summary: 'The API reference page',
      access: 'open',
      query: object({}),
      text: 'text/html',
      headers: PAGE_HEADERS,
      status: 200,
      handle: async () => apiReferencePage(title),
    }),
    operation({
      id: 'getDocsScript',
      method: 'GET',
      path: '/docs/scalar.js',
      tag,
      summary: 'The script of that page',
      access: 'open',
      query: object({}),
      text: 'text/javascript',
      headers: SCRIPT_HEADERS,
      status: 200,
      handle: apiReferenceScript,
    }),
  ];
}
