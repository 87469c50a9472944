"""In which span of OpenTelemetry or run of LangSmith an episode recalled: so a verdict on its trace finds it."""
