/**
 * What time it is for each consumer in `$1`: the last time it was seen consuming, less the gaps that are still
 * remembered. A clock stands still while its consumer does not consume, so what is compared with it is not deleted
 * while messages wait. It is behind by gaps from before a key was claimed, too: a key may be kept longer, never
 * shorter. Seconds, not intervals of days, which a change of the session's time zone would stretch.
 */
export const CONSUMER_CLOCKS = `
  SELECT consumer,
         least(active_at, now()) - interval '1 second' * coalesce(
           (SELECT sum(extract(epoch FROM ended_at - began_at))::double precision
            FROM consumer_gap WHERE consumer_gap.consumer = consumer_activity.consumer), 0) AS clock
  FROM consumer_activity
  WHERE consumer = ANY ($1::text[])`;
