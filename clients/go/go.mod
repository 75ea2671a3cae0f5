module paqm.example/client

go 1.19
