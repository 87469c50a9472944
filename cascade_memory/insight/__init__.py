"""What people look at: report, lift, the off-policy log, statistics and plots."""
