import { html, renderInlineCode, renderParagraphs } from './html-template.ts';
import type { Html } from './html-template.ts';
import type { OpenApiDocument, OperationObject, ParameterObject, ResponseObject } from './openapi.ts';
import {
  descriptionAndLimits,
  fieldTable,
  REQUIRED,
  schemaAnchor,
  typeLabel,
} from './api-reference-fields.ts';
import { referenceStyle } from './api-reference-style.ts';

interface OperationEntry {
  method: string;
  path: string;
  operation: OperationObject;
}

/** An interface as one page to read: nothing is fetched from elsewhere and no script is needed. */
export function referencePage(document: OpenApiDocument): string {
  const { info, tags, components } = document;
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): OperationEntry => ({ method, path, operation })),
  );
  const chapters = tags.map((tag) => ({
    tag,
    entries: entries.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  const schemaNames = Object.keys(components.schemas);

  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} ${info.version}</title>
<style>${referenceStyle}</style>
</head>
<body>
<nav aria-label="Contents">
<p class="title"><a href="#top">${info.title}</a> <small>${info.version}</small></p>
${chapters.map(
  ({ tag, entries }) => html`<h2><a href="#${tagAnchor(tag.name)}">${tag.name}</a></h2>
<ul>${entries.map(({ method, operation }) => html`<li><a href="#${operationAnchor(operation)}">${methodBadge(method)}<span>${operation.summary}</span></a></li>`)}</ul>
`,
)}${
  schemaNames.length > 0 &&
  html`<h2><a href="#schemas">Schemas</a></h2>
<ul>${schemaNames.map((name) => html`<li><a href="#${schemaAnchor(name)}">${name}</a></li>`)}</ul>
`
}</nav>
<main id="top">
<header><h1>${info.title} <small>${info.version}</small></h1>${renderParagraphs(info.description)}${apiSummary(document)}</header>
${chapters.map(
  ({
    tag,
    entries,
  }) => html`<section id="${tagAnchor(tag.name)}"><h2>${tag.name}</h2>${renderParagraphs(tag.description)}
${entries.map((entry) => operationArticle(entry, document))}</section>
`,
)}${
  schemaNames.length > 0 &&
  html`<section id="schemas"><h2>Schemas</h2>
${schemaNames.map((name) => schemaArticle(name, document))}</section>
`
}</main>
</body>
</html>
`;
  return page.toString();
}

function apiSummary(document: OpenApiDocument): Html {
  const { securitySchemes, responses, headers } = document.components;
  const failures = new Map(Object.values(responses).flatMap(({ content }) => Object.entries(content ?? {})));
  return html`<dl class="facts">
${document.servers.map(({ url }) => html`<dt>Address</dt><dd><code>${url}</code></dd>`)}
${Object.values(securitySchemes).map(({ description }) => html`<dt>Key</dt><dd>${renderParagraphs(description)}</dd>`)}
${[...failures].map(([mediaType, { schema }]) => html`<dt>Failures</dt><dd>${typeLabel(schema)} as <code>${mediaType}</code></dd>`)}
${Object.entries(headers).map(([name, header]) => html`<dt>Header <code>${name}</code></dt><dd>${renderInlineCode(header.description)}</dd>`)}
</dl>`;
}

const ACCESS_LABELS = {
  open: 'needs no key',
  read: 'needs a key that may read',
  write: 'needs a key that may write',
  operator: 'needs the operator’s key',
};

function operationArticle({ method, path, operation }: OperationEntry, document: OpenApiDocument): Html {
  const schemas = document.components.schemas;
  const parameters = (place: ParameterObject['in'], title: string): Html | undefined => {
    const rows =
      operation.parameters
        ?.filter((parameter) => parameter.in === place)
        .map((parameter) => parameterRow(parameter, document)) ?? [];
    return rows.length === 0
      ? undefined
      : html`<h4>${title}</h4><div class="scroll"><table class="fields"><tbody>${rows}</tbody></table></div>`;
  };
  return html`<article id="${operationAnchor(operation)}">
<h3><a href="#${operationAnchor(operation)}">${methodBadge(method)} <code>${path}</code></a> <small>${ACCESS_LABELS[operation['x-berth-access']]}</small></h3>
<p class="summary">${operation.summary}</p>${renderParagraphs(operation.description)}
${parameters('path', 'In the path')}${parameters('query', 'In the query')}${operation.requestBody && html`<h4>Body</h4>${renderParagraphs(operation.requestBody.description)}${Object.values(operation.requestBody.content).map(({ schema }) => html`<p>${typeLabel(schema)}</p>${descriptionAndLimits(schema, schemas)}${fieldTable(schema, schemas, true)}`)}`}
<h4>Answers</h4><div class="scroll"><table class="answers"><tbody>${Object.entries(operation.responses).map(([status, answer]) => responseRow(status, answer, document))}</tbody></table></div>
</article>
`;
}

function parameterRow(parameter: ParameterObject, document: OpenApiDocument): Html {
  const commas = parameter.explode === false ? html`, parted by commas` : undefined;
  return html`<tr><td><code>${parameter.name}</code>${parameter.required && REQUIRED}</td><td>${typeLabel(parameter.schema)}${commas}</td><td>${descriptionAndLimits(parameter.schema, document.components.schemas, parameter.description)}</td></tr>`;
}

/** What failures carry is told once, at the top. */
function responseRow(
  status: string,
  answer: OperationObject['responses'][string],
  document: OpenApiDocument,
): Html {
  const response: ResponseObject =
    '$ref' in answer
      ? (document.components.responses[answer.$ref.split('/').at(-1)!] ?? { description: '' })
      : answer;
  const bodies =
    '$ref' in answer
      ? []
      : Object.values(response.content ?? {}).map(({ schema }) => {
          const fields =
            '$ref' in schema ? undefined : fieldTable(schema, document.components.schemas, false);
          return fields === undefined
            ? html`<div>${typeLabel(schema)}</div>`
            : html`<details><summary>${typeLabel(schema)}</summary>${fields}</details>`;
        });
  return html`<tr><td><code>${status}</code></td><td>${renderInlineCode(response.description)}${bodies}</td></tr>`;
}

function schemaArticle(name: string, document: OpenApiDocument): Html {
  const schemas = document.components.schemas;
  const schema = schemas[name]!;
  return html`<article id="${schemaAnchor(name)}">
<h3><a href="#${schemaAnchor(name)}">${name}</a> <small>${typeLabel(schema)}</small></h3>
${descriptionAndLimits(schema, schemas)}${fieldTable(schema, schemas, false)}
</article>
`;
}

function methodBadge(method: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method.toUpperCase()}</span>`;
}

function operationAnchor(operation: OperationObject): string {
  return `operation-${anchor(operation.operationId)}`;
}

function tagAnchor(name: string): string {
  return `tag-${anchor(name).toLowerCase()}`;
}

function anchor(name: string): string {
  return name.replace(/[^\w.-]+/g, '-');
}
