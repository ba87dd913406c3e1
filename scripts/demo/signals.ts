/** What asks a program to stop: Ctrl-C, a supervisor, a terminal that is closed. */
export const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
