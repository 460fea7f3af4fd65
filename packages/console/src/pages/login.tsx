import { useEffect, useState } from 'react';
import { Command } from '../components/copy.tsx';
import { Note } from '../components/states.tsx';
import { Logo } from '../shell/logo.tsx';
import { SignInForm, signIn, signInProblem } from '../shell/sign-in-form.tsx';

/** Signing in with a key, or at once with the one-time link that `npm start` and `berth console` print. */
export function LoginPage() {
  const [problem, setProblem] = useState<string>();
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get('token'));
  useEffect(() => {
    document.title = 'Sign in · Berth';
    if (token === null) return;
    // The token works once: it does not belong into the history.
    history.replaceState(null, '', location.pathname + location.search);
    signIn({ token }).then(enter, (error: unknown) => setProblem(signInProblem(error)));
  }, [token]);
  return (
    <main className="login">
      <div className="card stack">
        <div className="row">
          <Logo size={34} />
          <h1>Sign in to Berth</h1>
        </div>
        {problem !== undefined && <Note tone="bad">{problem}</Note>}
        {token !== null && problem === undefined ? (
          <p role="status">Signing in …</p>
        ) : (
          <SignInForm onDone={enter} />
        )}
        <p className="muted">On the machine that runs Berth, this prints a link that signs you in:</p>
        <Command>npx berth console</Command>
      </div>
    </main>
  );
}

function enter(): void {
  const next = new URLSearchParams(location.search).get('next') ?? '/';
  // Only addresses of this console: a link from elsewhere must not lead away.
  location.replace(/^\/(?![/\\])/.test(next) ? next : '/');
}
