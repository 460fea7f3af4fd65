import { ruleError } from '../../support/errors.ts';
import { MAX_NAME_LENGTH, MAX_SECRET_VALUE_BYTES, SECRET_NAME_PATTERN } from '../limits.ts';

export function checkSecretName(name: string): void {
  if (name.length > MAX_NAME_LENGTH)
    throw ruleError(`a secret's name must be at most ${MAX_NAME_LENGTH} characters long`);
  if (!new RegExp(SECRET_NAME_PATTERN).test(name))
    throw ruleError(
      "a secret's name must start with a letter or an underscore and hold only letters, digits and _ . / -",
    );
  if (/^runpod/i.test(name))
    throw ruleError("a secret's name must not start with RUNPOD: those names are the platform's own");
}

export function checkSecretValue(value: string): void {
  if (value === '') throw ruleError("a secret's value must not be empty");
  if (Buffer.byteLength(value) >= MAX_SECRET_VALUE_BYTES)
    throw ruleError(`a secret's value must be smaller than ${MAX_SECRET_VALUE_BYTES} bytes`);
}
