import { useState } from 'react';
import type { FormEvent } from 'react';
import { ApiError, send } from '../api/client.ts';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/form.tsx';

/** Exchanges a key for a session. The key itself is not kept. */
export function SignInForm({ onDone }: { onDone: () => void }) {
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget;
    setBusy(true);
    setProblem(undefined);
    try {
      await signIn({ key: String(new FormData(form).get('key') ?? '').trim() });
      form.reset();
      onDone();
    } catch (error) {
      setProblem(signInProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="stack" method="post" onSubmit={(event) => void submit(event)}>
      <TextField
        label="API key"
        name="key"
        type="password"
        required
        autoFocus
        autoComplete="current-password"
        problem={problem}
        hint="The page does not keep it: it is exchanged for a session that ends when the key does."
      />
      <Button type="submit" variant="primary" disabled={busy}>
        Sign in
      </Button>
    </form>
  );
}

export async function signIn(credentials: { key: string } | { token: string }): Promise<void> {
  await send('/login', { method: 'POST', body: credentials });
}

export function signInProblem(error: unknown): string {
  if (error instanceof ApiError && error.status === 401 && error.message === 'invalid API key')
    return 'This is not a valid key: it is unknown, disabled, expired or revoked.';
  return error instanceof Error ? error.message : String(error);
}
