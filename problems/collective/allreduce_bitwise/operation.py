"""All-reduce of micro-batches' gradients in an order that depends on the size of the batch alone."""
import torch
import torch.distributed as dist


def tree(x: torch.Tensor) -> torch.Tensor:
    """x: [micro-batches, n]. The left half has the largest power of two below their number."""
    count = x.shape[0]
    if count == 1:
        return x[0]
    left = 1 << ((count - 1).bit_length() - 1)
    return tree(x[:left]) + tree(x[left:])


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [parts, n]; out: [n]."""
    batch = torch.empty(dist.get_world_size() * inp.shape[0], inp.shape[1], device=inp.device)
    dist.all_gather_into_tensor(batch, inp)
    out.copy_(tree(batch))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for parts, n in ((4, 512), (3, 1024)):
        operation(torch.randn(parts, n, device="cuda"), torch.empty(n, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
