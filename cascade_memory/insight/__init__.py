"""Results for people to look at: report, lift, off-policy log, statistics and plots."""
