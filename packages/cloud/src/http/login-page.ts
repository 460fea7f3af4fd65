import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { Html, html } from './rest/html-template.ts';

/** Where programs send their user to say yes or no to a login request. */
const LOGIN_PAGE_PATH = '/flash/login';

const MAX_ID_LENGTH = 64;

/**
 * The page asks for a key and sends the answer over GraphQL itself: the key goes nowhere else, and is kept
 * nowhere.
 */
export function loginPageRoutes(app: FastifyInstance): void {
  app.get(LOGIN_PAGE_PATH, async (request, reply) => {
    const requested = (request.query as Record<string, string | string[] | undefined>)['request'];
    const id =
      typeof requested === 'string' && requested.length <= MAX_ID_LENGTH && /^[\w-]+$/.test(requested)
        ? requested
        : undefined;
    const nonce = randomBytes(16).toString('base64');
    return reply
      .code(id === undefined ? 400 : 200)
      .type('text/html; charset=utf-8')
      .headers({
        'content-security-policy':
          `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src ` +
          `'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      })
      .send(page(id, nonce).toString());
  });
}

function page(id: string | undefined, nonce: string): Html {
  const body =
    id === undefined
      ? html`<p>The address has no request in it, or one that makes no sense.
        Start again in the program that sent you here.</p>`
      : form(id);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Berth: a program asks for a key</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<main><h1>A program asks for a key</h1>${body}</main>
${id !== undefined && html`<script nonce="${nonce}">${SCRIPT}</script>`}
</body>
</html>`;
}

function form(id: string): Html {
  return html`<p>Only say yes where you have just started a sign-in yourself. The program gets a key of its own,
with full access to your account; it is listed among your keys and can be revoked there.</p>
<form data-request="${id}">
<label for="key">One of your API keys, with full access</label>
<input id="key" type="password" autocomplete="off" required>
<div><button value="approve">Give it a key</button> <button value="deny">Refuse</button></div>
</form>
<p id="outcome" role="status"></p>`;
}

const STYLE = new Html(`
body { font: 16px/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 34rem; padding: 0 1rem }
label, input { display: block; width: 100%; box-sizing: border-box }
input { font: inherit; padding: .4rem; margin: .3rem 0 1rem }
button { font: inherit; padding: .3rem .9rem }
`);

const SCRIPT = new Html(`
const form = document.querySelector('form');
const outcome = document.getElementById('outcome');
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const verb = event.submitter.value;
  const query = 'mutation ($id: String) { ' + verb + 'FlashAuthRequest(flashAuthRequestId: $id) { status } }';
  outcome.textContent = 'One moment …';
  try {
    const key = document.getElementById('key').value.trim();
    const response = await fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer ' + key },
      body: JSON.stringify({ query, variables: { id: form.dataset.request } }),
    });
    const { errors } = await response.json();
    const done = verb === 'approve' ? 'Done. The program has its key' : 'Refused';
    outcome.textContent = errors ? errors[0].message : done + '. This page can be closed.';
    if (!errors) form.remove();
  } catch (error) {
    outcome.textContent = 'Berth did not answer: ' + error.message;
  }
});
`);
