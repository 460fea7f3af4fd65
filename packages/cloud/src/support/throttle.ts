/** Work that is asked for often is done at once and then once per pause, as long as it is asked for. */
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
