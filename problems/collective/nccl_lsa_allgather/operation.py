"""All-gather of equal shards, the gathering of weights in fully sharded training."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [n], out: [world, n]; words of 32 bits."""
    dist.all_gather_into_tensor(out.view(-1), inp)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (2048, 32768):
        inp = torch.randint(-(2**31), 2**31, (n,), dtype=torch.int32, device="cuda")
        operation(inp, torch.empty(dist.get_world_size(), n, dtype=inp.dtype, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
