from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Tensor(_message.Message):
    __slots__ = ("data_type", "shape", "data")
    class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BFLOAT16: _ClassVar[Tensor.DataType]
        FLOAT16: _ClassVar[Tensor.DataType]
        FLOAT32: _ClassVar[Tensor.DataType]
        FLOAT64: _ClassVar[Tensor.DataType]
        UINT8: _ClassVar[Tensor.DataType]
        UINT16: _ClassVar[Tensor.DataType]
        UINT32: _ClassVar[Tensor.DataType]
        UINT64: _ClassVar[Tensor.DataType]
    BFLOAT16: Tensor.DataType
    FLOAT16: Tensor.DataType
    FLOAT32: Tensor.DataType
    FLOAT64: Tensor.DataType
    UINT8: Tensor.DataType
    UINT16: Tensor.DataType
    UINT32: Tensor.DataType
    UINT64: Tensor.DataType
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data_type: Tensor.DataType
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, data_type: _Optional[_Union[Tensor.DataType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class IVF(_message.Message):
    __slots__ = ("offsets", "lengths", "centroids_tensor", "loss")
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    CENTROIDS_TENSOR_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    centroids_tensor: Tensor
    loss: float
    def __init__(self, offsets: _Optional[_Iterable[int]] = ..., lengths: _Optional[_Iterable[int]] = ..., centroids_tensor: _Optional[_Union[Tensor, _Mapping]] = ..., loss: _Optional[float] = ...) -> None: ...

class VectorIndexDetails(_message.Message):
    __slots__ = ("metric", "target_partition_size", "graph", "product", "scalar", "rotated", "flat", "hints")
    class Metric(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        L2: _ClassVar[VectorIndexDetails.Metric]
        COSINE: _ClassVar[VectorIndexDetails.Metric]
        DOT: _ClassVar[VectorIndexDetails.Metric]
        HAMMING: _ClassVar[VectorIndexDetails.Metric]
    L2: VectorIndexDetails.Metric
    COSINE: VectorIndexDetails.Metric
    DOT: VectorIndexDetails.Metric
    HAMMING: VectorIndexDetails.Metric
    class Graph(_message.Message):
        __slots__ = ("max_connections", "construction_ef", "max_level")
        MAX_CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
        CONSTRUCTION_EF_FIELD_NUMBER: _ClassVar[int]
        MAX_LEVEL_FIELD_NUMBER: _ClassVar[int]
        max_connections: int
        construction_ef: int
        max_level: int
        def __init__(self, max_connections: _Optional[int] = ..., construction_ef: _Optional[int] = ..., max_level: _Optional[int] = ...) -> None: ...
    class ProductCodes(_message.Message):
        __slots__ = ("num_bits", "num_sub_vectors")
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        NUM_SUB_VECTORS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        num_sub_vectors: int
        def __init__(self, num_bits: _Optional[int] = ..., num_sub_vectors: _Optional[int] = ...) -> None: ...
    class ScalarCodes(_message.Message):
        __slots__ = ("num_bits",)
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        def __init__(self, num_bits: _Optional[int] = ...) -> None: ...
    class RotatedCodes(_message.Message):
        __slots__ = ("num_bits",)
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        def __init__(self, num_bits: _Optional[int] = ...) -> None: ...
    class FlatCodes(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class HintsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    METRIC_FIELD_NUMBER: _ClassVar[int]
    TARGET_PARTITION_SIZE_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    SCALAR_FIELD_NUMBER: _ClassVar[int]
    ROTATED_FIELD_NUMBER: _ClassVar[int]
    FLAT_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    metric: VectorIndexDetails.Metric
    target_partition_size: int
    graph: VectorIndexDetails.Graph
    product: VectorIndexDetails.ProductCodes
    scalar: VectorIndexDetails.ScalarCodes
    rotated: VectorIndexDetails.RotatedCodes
    flat: VectorIndexDetails.FlatCodes
    hints: _containers.ScalarMap[str, str]
    def __init__(self, metric: _Optional[_Union[VectorIndexDetails.Metric, str]] = ..., target_partition_size: _Optional[int] = ..., graph: _Optional[_Union[VectorIndexDetails.Graph, _Mapping]] = ..., product: _Optional[_Union[VectorIndexDetails.ProductCodes, _Mapping]] = ..., scalar: _Optional[_Union[VectorIndexDetails.ScalarCodes, _Mapping]] = ..., rotated: _Optional[_Union[VectorIndexDetails.RotatedCodes, _Mapping]] = ..., flat: _Optional[_Union[VectorIndexDetails.FlatCodes, _Mapping]] = ..., hints: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TextIndexDetails(_message.Message):
    __slots__ = ("base_tokenizer", "language", "with_position", "max_token_length", "lower_case", "stem", "remove_stop_words", "ascii_folding", "min_ngram_length", "max_ngram_length", "prefix_only", "block_size", "format_version")
    BASE_TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    WITH_POSITION_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKEN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    LOWER_CASE_FIELD_NUMBER: _ClassVar[int]
    STEM_FIELD_NUMBER: _ClassVar[int]
    REMOVE_STOP_WORDS_FIELD_NUMBER: _ClassVar[int]
    ASCII_FOLDING_FIELD_NUMBER: _ClassVar[int]
    MIN_NGRAM_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_NGRAM_LENGTH_FIELD_NUMBER: _ClassVar[int]
    PREFIX_ONLY_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    base_tokenizer: str
    language: str
    with_position: bool
    max_token_length: int
    lower_case: bool
    stem: bool
    remove_stop_words: bool
    ascii_folding: bool
    min_ngram_length: int
    max_ngram_length: int
    prefix_only: bool
    block_size: int
    format_version: int
    def __init__(self, base_tokenizer: _Optional[str] = ..., language: _Optional[str] = ..., with_position: bool = ..., max_token_length: _Optional[int] = ..., lower_case: bool = ..., stem: bool = ..., remove_stop_words: bool = ..., ascii_folding: bool = ..., min_ngram_length: _Optional[int] = ..., max_ngram_length: _Optional[int] = ..., prefix_only: bool = ..., block_size: _Optional[int] = ..., format_version: _Optional[int] = ...) -> None: ...
