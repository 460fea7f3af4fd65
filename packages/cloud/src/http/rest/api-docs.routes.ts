import type { OpenApiDocument } from './openapi.ts';
import type { Operation } from './rest-operation.ts';
import { operation } from './rest-operation.ts';
import { anyValue, object } from './json-schema.ts';

/** Where an interface describes itself: the document for tools, the page for people. Both are open, and made on first use. */
export function apiDocsOperations(describe: () => Promise<OpenApiDocument>): Operation[] {
  const tag = 'About';
  let document: Promise<OpenApiDocument> | undefined;
  const described = (): Promise<OpenApiDocument> => (document ??= describe());
  return [
    operation({
      id: 'getOpenApi',
      method: 'GET',
      path: '/openapi.json',
      tag,
      summary: 'This interface as an OpenAPI document',
      access: 'open',
      status: 200,
      answer: { type: 'object', ...anyValue({ description: 'An OpenAPI 3.1 document' }) },
      handle: described,
    }),
    operation({
      id: 'getDocs',
      method: 'GET',
      path: '/docs',
      tag,
      summary: 'This interface as a page for people',
      access: 'open',
      query: object({}),
      htmlPage: true,
      status: 200,
      handle: async () => {
        const { referencePage } = await import('./api-reference-page.ts');
        return referencePage(await described());
      },
    }),
  ];
}
