// No other modules: so the connector for LiveKit, which is a module of its own, takes nothing else with it.
module paqm.example/connectors/share

go 1.24.0
