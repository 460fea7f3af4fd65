import { useQueryClient } from '@tanstack/react-query';
import { Dialog } from '../components/dialog.tsx';
import { SignInForm } from './sign-in-form.tsx';

export default function SessionEndedDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const resume = (): void => {
    onClose();
    void client.invalidateQueries();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="Your session has ended"
      description={
        'It expired, or its key was revoked. Sign in again to go on; nothing that you typed is lost.'
      }
    >
      <SignInForm onDone={resume} />
    </Dialog>
  );
}
