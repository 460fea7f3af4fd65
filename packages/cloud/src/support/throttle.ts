/** Runs work at once, and then at most once per pause while it is requested again. */
export function throttle(work: () => Promise<void>, pauseMs: number): () => void {
  let isBusy = false;
  let isWanted = false;
  const round = async (): Promise<void> => {
    isBusy = true;
    isWanted = false;
    await work();
    setTimeout(() => {
      isBusy = false;
      if (isWanted) void round();
    }, pauseMs).unref();
  };
  return () => {
    isWanted = true;
    if (!isBusy) void round();
  };
}
