module github.com/libwaste/waste/examples/go-chat

go 1.19

require github.com/libwaste/waste/bindings/go v0.0.0

replace github.com/libwaste/waste/bindings/go => ../../bindings/go
