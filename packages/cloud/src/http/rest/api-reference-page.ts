import { readFile } from 'node:fs/promises';
import { html } from './html-template.ts';

/**
 * Scalar's API reference, one script with everything in it. It is stored and sent compressed: every browser
 * reads gzip.
 */
const SCRIPT = new URL('../../../assets/api-reference/scalar.js.gz', import.meta.url);
export const SCRIPT_HEADERS = { 'content-encoding': 'gzip', 'cache-control': 'public, max-age=3600' };

/**
 * The page may load and ask this server only. Scalar sets styles from its script, so inline styles are
 * allowed; inline scripts are not.
 */
export const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data: blob:; " +
    "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors " +
    "'none'",
};

/** Everything that would ask another host is off: fonts, telemetry, the hosted client and its proxy. */
const CONFIGURATION = {
  url: 'openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
};

/**
 * The page for people, beside the OpenAPI document that it shows. Addresses are relative, so that it works
 * below any prefix.
 */
export function apiReferencePage(title: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
</head>
<body>
<noscript>This page needs JavaScript. The same description is at <a href="openapi.json">openapi.json</a>.</noscript>
<script id="api-reference" data-configuration="${JSON.stringify(CONFIGURATION)}"></script>
<script src="docs/scalar.js"></script>
</body>
</html>
`.toString();
}

export function apiReferenceScript(): Promise<Buffer> {
  return readFile(SCRIPT);
}
