"""All-reduce of a list of ragged gradients, flattened into one bucket."""
import torch
import torch.distributed as dist


def length(t: int, width: int) -> int:
    return 1 + 7919 * (t + 1) % (width if t % 2 == 0 else -(-width // 16))


def operation(inp: torch.Tensor, place: torch.Tensor, out: torch.Tensor) -> None:
    """inp, out: [tensors, width] fp32; place: [tensors] int32, the slot of each tensor."""
    width = inp.shape[1]
    slots = [(slot, length(t, width)) for t, slot in enumerate(place.tolist())]
    bucket = torch.cat([inp[slot, :count] for slot, count in slots])
    dist.all_reduce(bucket)
    for (slot, count), total in zip(slots, bucket.split([count for _, count in slots])):
        out[slot, :count] = total


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for width in (1024, 8192):
        inp = torch.randn(32, width, device="cuda")
        place = torch.randperm(32, device="cuda").int()
        operation(inp, place, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
