import { useEffect, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { onSessionEnded } from '../api/client.ts';
import { Dialog } from '../components/dialog.tsx';
import { SignInForm } from './sign-in-form.tsx';

/** The session ended while a page was open: signing in again keeps the page, and what was typed into it. */
export function SignInAgain() {
  const [ended, setEnded] = useState(false);
  const client = useQueryClient();
  useEffect(() => onSessionEnded(() => setEnded(true)), []);
  const resume = (): void => {
    setEnded(false);
    void client.invalidateQueries();
  };
  return (
    <Dialog
      open={ended}
      onClose={() => setEnded(false)}
      title="Your session has ended"
      description={
        'It expired, or its key was revoked. Sign in again to go on; nothing that you typed is lost.'
      }
    >
      <SignInForm onDone={resume} />
    </Dialog>
  );
}
