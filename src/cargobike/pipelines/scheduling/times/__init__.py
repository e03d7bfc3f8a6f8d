"""The calendar: intervals, cron expressions, time zones; pure, with times in seconds since 1970."""
