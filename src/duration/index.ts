export { durationText, milliseconds, type Duration } from './duration.js';
