import { ruleError } from '../support/errors.ts';

/** One line of authorized_keys: type, key, and a comment if there is one. */
export const SSH_KEY_PATTERN = '^(ssh|ecdsa|sk)-\\S+ \\S+([ \\t][^\\n\\r]*)?$';

/** The GraphQL interface keeps all keys in one text, a blank line between them. */
export function joinSshKeys(keys: readonly string[]): string {
  return keys.join('\n\n');
}

export function splitSshKeys(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

export function checkSshKeys(keys: readonly string[]): void {
  const pattern = new RegExp(SSH_KEY_PATTERN);
  const wrong = keys.findIndex((key) => !pattern.test(key));
  if (wrong !== -1)
    throw ruleError(
      `SSH key ${wrong + 1} must be a public key line: type, key, and a comment if you like (see your ` +
        '~/.ssh/id_ed25519.pub)',
    );
}

/** Where a pod's SSH server listens. */
export const SSH_PORT = 22;
